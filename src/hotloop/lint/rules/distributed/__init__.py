"""Several devices."""
