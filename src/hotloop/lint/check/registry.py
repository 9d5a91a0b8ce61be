"""All static rules, found in the folders of their families."""

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from hotloop.discovery import members
from hotloop.lint.rule import Rule

FAMILIES = ("data", "host", "compute", "memory", "distributed", "run")
"""In the order in which they are shown."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Every rule, family by family: each module of a family's folder that has a `rule`."""
    return tuple(
        replace(module.rule, family=family)
        for family in FAMILIES
        for module in members(f"hotloop.lint.rules.{family}")
        if hasattr(module, "rule")
    )


def chosen_rules(select: Collection[str], ignore: Collection[str]) -> tuple[Rule, ...]:
    """The rules that `select` names (all, where it is empty) and `ignore` does not, by code or by family."""
    return tuple(
        rule
        for rule in all_rules()
        if (not select or rule.code in select or rule.family in select)
        and rule.code not in ignore
        and rule.family not in ignore
    )


def known_names() -> frozenset[str]:
    """Every code and every family."""
    return frozenset(rule.code for rule in all_rules()) | frozenset(FAMILIES)
