"""Normalization layers that a program writes out: which one a class is, and what takes its place.

In: the source and the modules of a running model. Out: one call in the place of several operations. Reads source with
`ast`, because it is imported in the user's process.
"""
