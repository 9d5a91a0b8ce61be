"""no_grad_evaluation: evaluation without a graph."""
