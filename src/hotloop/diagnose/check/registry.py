"""All dynamic rules, gathered from their families."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hotloop.diagnose.rule import Rule
from hotloop.diagnose.rules import compute, data, distributed, host, memory, run

FAMILIES = {
    "data": data.RULES,
    "host": host.RULES,
    "compute": compute.RULES,
    "memory": memory.RULES,
    "distributed": distributed.RULES,
    "run": run.RULES,
}


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Every rule, family by family."""
    return tuple(replace(rule, family=family) for family, rules in FAMILIES.items() for rule in rules)
