"""Activation functions that a program writes out: which one a formula is, and where it stands."""
