"""The manual of a set of rules: a page for each, and one of all; static and measured rules have one each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar


class Documented(Protocol):
    """What the manual asks of a rule, of whatever kind."""

    @property
    def code(self) -> str:
        """Its name."""

    @property
    def family(self) -> str:
        """The folder it lives in."""

    @property
    def page(self) -> str:
        """Its file's docstring."""


Rule = TypeVar("Rule", bound=Documented)


@dataclass(frozen=True)
class RuleBook(Generic[Rule]):
    """The manual of one kind of rules."""

    rules: Callable[[], Sequence[Rule]]
    families: Collection[str]
    introduction: Path
    """What the page of all rules begins with."""
    facts: Callable[[Rule], Sequence[str]]
    """What is declared about a rule, a line each."""
    columns: Mapping[str, Callable[[Rule], str]]
    """Of the table of all rules, beside code and family."""

    def names(self) -> list[str]:
        """The codes of all rules."""
        return [rule.code for rule in self.rules()]

    def page(self, name: str) -> str | None:
        """The manual page of one rule as Markdown; None where no rule has the name."""
        return next((self.render(rule) for rule in self.rules() if rule.code == name), None)

    def render(self, rule: Rule, level: int = 1) -> str:
        """A rule's page: its name, what is declared about it, and its docstring."""
        head = "#" * level
        title, _, body = rule.page.strip().partition("\n")
        body = body.replace("\n## ", f"\n{head}# ")
        declared = "\n".join(f"- {fact}" for fact in self.facts(rule))
        return f"{head} {rule.code}\n\n{title}\n\n{declared}\n\n{body.strip()}\n"

    def manual(self) -> str:
        """The page of all rules as Markdown."""
        parts = [self.introduction.read_text(encoding="utf-8"), self._table()]
        for family in self.families:
            parts.append(f"## {family}\n")
            parts.extend(self.render(rule, level=3) for rule in self.rules() if rule.family == family)
        return "\n".join(parts).rstrip() + "\n"

    def write(self, arguments: Sequence[str]) -> int:
        """Write the page to the file named; with `--check`, say by the exit code whether it is up to date."""
        target = Path(arguments[-1])
        if "--check" in arguments:
            return 0 if target.is_file() and target.read_text(encoding="utf-8") == self.manual() else 1
        target.write_text(self.manual(), encoding="utf-8")
        return 0

    def _table(self) -> str:
        names = ["code", "family", *self.columns]
        rows = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
        for rule in self.rules():
            cells = [f"[{rule.code}](#{rule.code})", rule.family]
            cells += [cell(rule) for cell in self.columns.values()]
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join(rows) + "\n"
