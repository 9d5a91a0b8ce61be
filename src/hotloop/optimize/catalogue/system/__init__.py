"""Optimizations of the process and its machine."""
