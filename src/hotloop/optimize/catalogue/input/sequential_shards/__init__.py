"""sequential_shards: small random reads become long sequential ones."""
