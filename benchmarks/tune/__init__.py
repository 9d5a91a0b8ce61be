"""The tuner on real processes: against itself, beside a neighbour, killed, and against a person."""
