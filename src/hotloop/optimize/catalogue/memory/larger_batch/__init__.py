"""larger_batch: the training loaders make larger batches."""
