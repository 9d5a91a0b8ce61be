"""Memory."""

from hotloop.diagnose.rules.memory import (
    near_memory_limit,
    swapping,
)

RULES = (
    near_memory_limit.rule,
    swapping.rule,
)
