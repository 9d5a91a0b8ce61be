"""Compiled calls of root modules: for the optimizations that compile, or set what compilation goes by."""
