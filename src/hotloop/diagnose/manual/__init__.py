"""The manual of the dynamic rules, generated from their docstrings."""
