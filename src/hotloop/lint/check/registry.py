"""All static rules, gathered from their families."""

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from hotloop.lint.rule import Rule
from hotloop.lint.rules import compute, data, distributed, host, memory, run

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
