"""fused_pointwise: activation functions that are written out become one call."""
