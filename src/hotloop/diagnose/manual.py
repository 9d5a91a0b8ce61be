"""`python -m hotloop.diagnose.manual docs/diagnose.md` writes the page of all rules; `--check` compares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hotloop.diagnose.pages import render
from hotloop.diagnose.registry import FAMILIES, all_rules

_INTRODUCTION = Path(__file__).with_name("manual_introduction.md")


def manual() -> str:
    """The whole page as Markdown."""
    parts = [_INTRODUCTION.read_text(encoding="utf-8"), _table()]
    for family in FAMILIES:
        parts.append(f"## {family}\n")
        parts.extend(render(rule, level=3) for rule in all_rules() if rule.family == family)
    return "\n".join(parts).rstrip() + "\n"


def _table() -> str:
    rows = ["| code | family | title | tried by |", "|---|---|---|---|"]
    rows += [
        f"| [{rule.code}](#{rule.code}) | {rule.family} | {rule.title} | {rule.optimization or ''} |"
        for rule in all_rules()
    ]
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page to the file named; with `--check`, say by the exit code whether it is up to date."""
    target = Path(arguments[-1])
    if "--check" in arguments:
        return 0 if target.is_file() and target.read_text(encoding="utf-8") == manual() else 1
    target.write_text(manual(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
