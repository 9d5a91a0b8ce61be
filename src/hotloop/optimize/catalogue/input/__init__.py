"""Optimizations of the data path.

`family` lists them. Nothing is imported here: modules beside it are imported in the user's process.
"""
