"""Static rules: what costs time or memory, read from the source without importing it."""
