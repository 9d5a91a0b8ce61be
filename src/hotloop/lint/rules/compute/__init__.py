"""How the device computes."""
