"""Whether the screen names the holder: the class, a line that the program marks, and a change that helps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from benchmarks.out_of_memory.cases import Case


def judged(case: Case, ran: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one program."""
    found, screen = ran["found"], " ".join(ran["screen"].split())
    by_class = found.get("by_class", {})
    largest = max(by_class, key=lambda name: by_class[name], default="")
    lines = sorted(set(_lines(case, screen)) & case.marked())
    changes = " ".join(row["change"] for row in found.get("remedies", ())) + " " + screen
    verdicts = {
        "died": ran["code"] == 3 and bool(found),
        "class": largest in case.classes or not case.classes,
        "line": bool(lines) or not case.marked(),
        "change": case.remedy in changes,
        "word": case.word in screen,
    }
    return {
        "way": case.way,
        "named": all(verdicts.values()),
        "missing": [name for name, holds in verdicts.items() if not holds],
        "says": f"{largest} {_mib(by_class.get(largest, 0))} of {_mib(found.get('held_bytes', 0))}",
        "lines": lines,
        "asked": found.get("asked_bytes"),
        "first": next((row["change"] for row in found.get("remedies", ())), ""),
        "screen": ran["screen"],
    }


def _mib(num_bytes: float) -> str:
    return f"{num_bytes / 2**20:,.0f} MiB"


def _lines(case: Case, screen: str) -> Iterable[int]:
    """Yield the lines of the program that the screen names after the program's own last words."""
    said = screen[screen.find("our program ran out of memory") :]
    return (int(number) for number in re.findall(rf"{case.name}\.py:(\d+)", said.replace("_ ", "_")))
