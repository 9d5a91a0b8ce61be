"""The catalogue: one family, one folder; one optimization, one file."""
