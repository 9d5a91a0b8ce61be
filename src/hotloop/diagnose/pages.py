"""Manual pages of the dynamic rules, for `hotloop explain`."""

from __future__ import annotations

from hotloop.diagnose.registry import all_rules
from hotloop.diagnose.rule import Rule


def names() -> list[str]:
    """The codes of all dynamic rules."""
    return [rule.code for rule in all_rules()]


def page(name: str) -> str | None:
    """The manual page of one rule as Markdown; None where no rule has the name."""
    return next((render(rule) for rule in all_rules() if rule.code == name), None)


def render(rule: Rule, level: int = 1) -> str:
    """A rule's page: its name, what is declared about it, and its docstring."""
    head = "#" * level
    title, _, body = rule.page.strip().partition("\n")
    body = body.replace("\n## ", f"\n{head}# ")
    return f"{head} {rule.code}\n\n{title}\n\n{_facts(rule)}\n{body.rstrip()}\n"


def _facts(rule: Rule) -> str:
    rows = ["- measured by: `hotloop diagnose`", f"- family: {rule.family}"]
    rows.append(f"- tried by: {rule.optimization or 'a person has to'}")
    if rule.explains:
        rows.append(f"- takes the place of: {', '.join(sorted(rule.explains))}")
    return "\n".join(rows) + "\n"
