"""The manual pages of all optimizations as one Markdown page.

`python -m hotloop.optimize.pages docs/optimizations.md` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hotloop.optimize.optimization import Optimization
from hotloop.optimize.registry import built_in

TITLES = {
    "input": "Input: the data path",
    "precision": "Precision",
    "compute": "Compute",
    "memory": "Memory: a smaller peak",
    "system": "System: the process and its machine",
}
NUMERICS = {
    "exact": "exact: the same numbers, or sums in another order",
    "tolerance": "tolerance: on only where the parity check passes",
    "semantic": "semantic: a different optimization problem, only where you allow it",
}


def page() -> str:
    """Return the page, made of the docstrings of the catalogue."""
    parts = ["# Optimizations", _INTRODUCTION]
    for family, classes in built_in().items():
        parts.append(f"## {TITLES[family]}")
        parts.extend(_entry(cls) for cls in classes)
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """\
What `hotloop tune` tries. Each is tried on your program against your program, and kept only if it is measured
to be faster and, where its class asks for it, still learns the same. `hotloop explain NAME` prints one of
these pages.

This file is made from the catalogue by `python -m hotloop.optimize.pages docs/optimizations.md`."""


def _entry(cls: type[Optimization]) -> str:
    text = cls.manual()
    summary, _, rest = text.partition("\n\n")
    facts = f"*Numerics:* {NUMERICS[cls.numerics.value]}."
    if others := _not_together(cls):
        names = ", ".join(f"`{name}`" for name in sorted(others))
        facts += f" *Not together with* {names}."
    return f"### {cls.name}\n\n**{summary}**\n\n{facts}\n\n{_emphasized(rest)}"


def _not_together(cls: type[Optimization]) -> set[str]:
    """Return the names of what cannot be on beside one, whichever of the two says so."""
    rows = [row for family in built_in().values() for row in family]
    return {*cls.conflicts, *(row.name for row in rows if cls.name in row.conflicts)}


def _emphasized(text: str) -> str:
    """Set the first words of each paragraph, up to the colon, in bold."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        label, colon, rest = paragraph.partition(":")
        short = colon and len(label) <= 40 and "\n" not in label
        paragraphs.append(f"**{label}.**{rest}" if short else paragraph)
    return "\n\n".join(paragraphs)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
