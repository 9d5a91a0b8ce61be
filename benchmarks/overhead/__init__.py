"""What observing costs."""
