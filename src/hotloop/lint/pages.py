"""Manual pages of the static rules, for `hotloop explain`."""

from hotloop.lint.registry import all_rules
from hotloop.lint.rule import FixSafety, Rule


def names() -> list[str]:
    """The codes of all static rules."""
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
    rows = [f"- severity: {rule.severity.value}", f"- family: {rule.family}"]
    rows.append(f"- tried by: {rule.optimization or 'a person has to'}")
    rows.append(f"- fix: {_FIX[rule.fix]}")
    return "\n".join(rows) + "\n"


_FIX = {
    None: "none",
    FixSafety.SAFE: "safe, `--fix` applies it",
    FixSafety.UNSAFE: "unsafe, `--fix --unsafe` applies it",
    FixSafety.DISPLAY: "only shown",
}
