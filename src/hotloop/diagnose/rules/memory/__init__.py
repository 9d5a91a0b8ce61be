"""Memory."""

from hotloop.diagnose.rules.memory import (
    activations_dominate,
    data_held_on_device,
    evaluation_with_gradients,
    gradients_held_in_forward,
    loss_graph_kept_alive,
    loss_makes_peak,
    memory_growing,
    memory_swapped,
    near_memory_limit,
    optimizer_state_dominates,
    optimizer_step_makes_peak,
    page_faults_in_step,
)

RULES = (
    near_memory_limit.rule,
    memory_swapped.rule,
    loss_graph_kept_alive.rule,
    memory_growing.rule,
    page_faults_in_step.rule,
    evaluation_with_gradients.rule,
    activations_dominate.rule,
    loss_makes_peak.rule,
    optimizer_state_dominates.rule,
    optimizer_step_makes_peak.rule,
    gradients_held_in_forward.rule,
    data_held_on_device.rule,
)
