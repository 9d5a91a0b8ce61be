"""vectorized_fetch: a batch is one indexing operation, not one a sample."""
