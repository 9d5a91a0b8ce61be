"""The fault library against `hotloop diagnose`."""
