"""All dynamic rules, found in the folders of their families."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hotloop.diagnose.rule import Rule
from hotloop.discovery import members

FAMILIES = ("data", "host", "compute", "memory", "distributed", "run")
"""In the order in which they are shown."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Every rule, family by family: each module of a family's folder that has a `rule`."""
    return tuple(
        replace(module.rule, family=family)
        for family in FAMILIES
        for module in members(f"hotloop.diagnose.rules.{family}")
        if hasattr(module, "rule")
    )
