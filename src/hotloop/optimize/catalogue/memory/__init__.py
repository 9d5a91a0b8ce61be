"""Optimizations of memory: a smaller peak, mostly for more time."""
