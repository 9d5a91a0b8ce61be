"""All dynamic rules."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hotloop.diagnose import rules
from hotloop.diagnose.rule import Rule
from hotloop.lint.discovery import rules_in


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Every rule, family by family."""
    return tuple(replace(rule, family=family) for family, rule in rules_in(rules, Rule))
