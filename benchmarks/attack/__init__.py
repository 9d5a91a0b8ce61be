"""The attack suite, counted."""
