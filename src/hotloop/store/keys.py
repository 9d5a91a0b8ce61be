"""The names under which sessions hold what every command reads."""

OBSERVATION = "observation"
RESULT = "result"
"""Of `tune`."""
