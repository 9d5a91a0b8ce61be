"""The formats of a shard: written whole from samples, read by position or in order."""
