"""Optimizations of what is computed and how."""
