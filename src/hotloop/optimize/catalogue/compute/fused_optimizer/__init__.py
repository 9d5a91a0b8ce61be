"""fused_optimizer: the optimizer's step in one kernel."""
