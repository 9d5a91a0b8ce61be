"""Optimizations of what is computed and how.

`family` lists them. Nothing is imported here: modules beside it are imported in the user's process.
"""
