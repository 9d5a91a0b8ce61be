"""fused_layers: normalizations that are written out become one call."""
