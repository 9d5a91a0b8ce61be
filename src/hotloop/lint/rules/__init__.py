"""The static rules, one file each, in families."""
