"""Reduced precision for several optimizations: autocast, the modules kept out of it, layers of eight bits."""
