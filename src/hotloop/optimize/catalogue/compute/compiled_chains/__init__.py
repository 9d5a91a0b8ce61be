"""compiled_chains: chains of pointwise operations become one kernel each, where the whole model does not compile."""
