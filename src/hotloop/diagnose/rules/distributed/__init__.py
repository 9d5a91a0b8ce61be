"""Several processes or devices."""
