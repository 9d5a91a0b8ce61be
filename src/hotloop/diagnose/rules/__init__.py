"""The dynamic rules, one file each, in families."""
