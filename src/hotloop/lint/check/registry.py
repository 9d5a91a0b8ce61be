"""All static rules."""

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from hotloop.lint import rules
from hotloop.lint.discovery import FAMILIES, rules_in
from hotloop.lint.rule import Rule


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Every rule, family by family."""
    return tuple(replace(rule, family=family) for family, rule in rules_in(rules, Rule))


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
