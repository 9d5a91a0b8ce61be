"""foreach_clipping: gradients are clipped all at once."""
