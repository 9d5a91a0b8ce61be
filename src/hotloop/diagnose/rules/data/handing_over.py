"""What it costs to pass a batch from a worker to the training process."""

BATCH_S = 4e-3
"""3.7 to 4.9 ms a batch of 8 or 64 small samples with one or two workers, against 0.4 and 0.6 ms made in the process
itself (torch 2.13, two busy cores): a batch that is made faster than this does not get faster by workers."""
