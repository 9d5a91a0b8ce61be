"""What the host does beside computing."""
