"""Programs that run out of memory in ten ways, and whether the screen names what held it."""
