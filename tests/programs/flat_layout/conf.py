"""Settings as a module; imported by its short name."""

BATCH_SIZE = 64
STEPS = 300
