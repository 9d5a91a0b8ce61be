"""loader_workers: batches are made by worker processes, beside training."""
