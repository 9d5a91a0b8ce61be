"""Optimizations of the data path."""
