"""Optimizations that compute with fewer bits."""
