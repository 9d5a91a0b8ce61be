"""Optimizations that compute with fewer bits.

`family` lists them. Nothing is imported here: modules beside it are imported in the user's process.
"""
