"""pinned_memory: batches in page-locked memory, copied to the device without waiting."""
