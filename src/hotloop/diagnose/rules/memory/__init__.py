"""Memory."""

from hotloop.diagnose.rules.memory import (
    memory_swapped,
    near_memory_limit,
)

RULES = (
    near_memory_limit.rule,
    memory_swapped.rule,
)
