"""Optimizations of the process and its machine.

`family` lists them. Nothing is imported here: modules beside it are imported in the user's process.
"""
