"""Memory."""

from hotloop.diagnose.rules.memory import (
    evaluation_with_gradients,
    memory_growing,
    memory_swapped,
    near_memory_limit,
)

RULES = (
    near_memory_limit.rule,
    memory_swapped.rule,
    memory_growing.rule,
    evaluation_with_gradients.rule,
)
