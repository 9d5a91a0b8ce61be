"""loader_prefetch: each worker prepares more batches ahead."""
