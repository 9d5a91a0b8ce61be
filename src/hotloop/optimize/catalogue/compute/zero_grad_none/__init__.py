"""zero_grad_none: gradients are let go instead of filled with zeros."""
