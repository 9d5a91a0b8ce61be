"""vectorized_loop: a Python loop over the rows of a tensor becomes one call."""
