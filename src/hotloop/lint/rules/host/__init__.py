"""What the host does in each step."""
