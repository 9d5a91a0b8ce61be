"""Manual pages of the dynamic rules, for `hotloop explain`."""

from __future__ import annotations

from pathlib import Path

from hotloop.diagnose.check.registry import FAMILIES, all_rules
from hotloop.diagnose.rule import Rule
from hotloop.lint.manual.rulebook import RuleBook


def _facts(rule: Rule) -> list[str]:
    facts = ["measured by: `hotloop diagnose`", f"family: {rule.family}"]
    facts.append(
        f"tried by: `hotloop tune --only {rule.optimization}`" if rule.optimization else "fix: by hand"
    )
    if rule.explains:
        facts.append(f"takes the place of: {', '.join(sorted(rule.explains))}")
    return facts


BOOK = RuleBook(
    rules=all_rules,
    families=FAMILIES,
    introduction=Path(__file__).with_name("introduction.md"),
    facts=_facts,
    columns={"title": lambda rule: rule.title, "tried by": lambda rule: rule.optimization or ""},
)
names = BOOK.names
page = BOOK.page
