"""What is kept, and for how long."""
