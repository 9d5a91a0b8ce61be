"""lossy_in_half: autocast, with the modules left out that lose most in half precision."""
