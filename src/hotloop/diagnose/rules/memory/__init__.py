"""Memory."""

from hotloop.diagnose.rules.memory import near_memory_limit

RULES = (near_memory_limit.rule,)
