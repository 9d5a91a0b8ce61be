"""Trace reports as documents: `report` is of one trace or several, `diff` is of two."""
