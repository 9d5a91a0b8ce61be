"""dataset_in_memory: every sample is read, decoded and transformed once, and kept."""
