"""Activation functions that a program writes out: which one a formula is, where it stands, what takes its place.

In: the source and the functions of a running model. Out: one call in the place of several operations. Reads source
with `ast`, because it is imported in the user's process.
"""
