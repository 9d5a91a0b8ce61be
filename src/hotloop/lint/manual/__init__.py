"""The manual of the static rules, generated from their docstrings."""
