"""Manual pages of the static rules, for `hotloop explain`."""

from pathlib import Path

from hotloop.lint.check.registry import FAMILIES, all_rules
from hotloop.lint.manual.rulebook import RuleBook
from hotloop.lint.rule import Rule
from hotloop.model.safety import Safety

_FIX = {
    None: "by hand",
    Safety.SAFE: "safe, `--fix` applies it",
    Safety.UNSAFE: "unsafe, `--fix --unsafe` applies it",
}


def _facts(rule: Rule) -> list[str]:
    facts = [f"severity: {rule.severity.value}", f"family: {rule.family}", f"fix: {_FIX[rule.fix]}"]
    return [*facts, f"tried by: `hotloop tune --only {rule.optimization}`"] if rule.optimization else facts


BOOK = RuleBook(
    rules=all_rules,
    families=FAMILIES,
    introduction=Path(__file__).with_name("introduction.md"),
    facts=_facts,
    columns={
        "severity": lambda rule: rule.severity.value,
        "fix": lambda rule: rule.fix.name.lower() if rule.fix is not None else "",
        "tried by": lambda rule: rule.optimization or "",
    },
)
names = BOOK.names
page = BOOK.page
