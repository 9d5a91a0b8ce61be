"""Memory."""

from hotloop.diagnose.rules.memory import (
    evaluation_with_gradients,
    loss_graph_kept_alive,
    memory_growing,
    memory_swapped,
    near_memory_limit,
    page_faults_in_step,
)

RULES = (
    near_memory_limit.rule,
    memory_swapped.rule,
    loss_graph_kept_alive.rule,
    memory_growing.rule,
    page_faults_in_step.rule,
    evaluation_with_gradients.rule,
)
