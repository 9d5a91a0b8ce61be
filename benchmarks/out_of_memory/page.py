"""The result page of the ten programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def page(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of the page below its title."""
    return list(_lines(rows))


def _lines(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    named = sum(bool(row["named"]) for row in rows.values())
    yield (
        "Made by `python -m benchmarks.out_of_memory`: small training programs with one fault each, run by `hotloop "
        "observe --full` until they die, nine under `ulimit -v`, one by SIGKILL at a resident size. *Named*: the class "
        "that holds most is the right one, a line that the program marks as the holder is on the screen, and so is a "
        f"change that helps. {named} of {len(rows)} are named."
    )
    yield ""
    yield "| program | dies of | named | holds most | marked lines named | first change | not named |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in rows.items():
        lines = ", ".join(map(str, row["lines"])) or "-"
        yield (
            f"| {name} | {row['way']} | {'yes' if row['named'] else 'no'} | {row['says']} | {lines} | {row['first']} | "
            f"{', '.join(row['missing'])} |"
        )
