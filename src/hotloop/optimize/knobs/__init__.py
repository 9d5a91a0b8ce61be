"""Knobs that several optimizations share: changes that can be switched on and off in a running program."""
