"""slow_in_half: autocast, with the modules left out that are slower in half precision."""
