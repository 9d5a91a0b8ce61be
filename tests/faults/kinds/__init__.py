"""The faults, by where the time goes."""
