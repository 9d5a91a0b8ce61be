"""persistent_workers: workers are kept from epoch to epoch."""
