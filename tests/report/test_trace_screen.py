"""What `hotloop trace analyze` and `hotloop lint` show, from made-up input."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Group

from hotloop.report.terminal.screen import Screen
from hotloop.report.terminal.trace import render_next, show_report
from hotloop.trace.ranks.study import analyze

from ..trace.conftest import example_trace
from .snapshots import matches


class Kept(Screen):
    """A screen that keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.parts: list[object] = []

    def show(self, what: object) -> None:  # type: ignore[override]
        self.parts.append(what)


def test_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(example_trace()))
    report, kept = analyze(path), Kept()
    show_report(kept, report, 10)
    kept.show(render_next(report, "traces/small.json"))
    assert matches("trace", Group(*kept.parts))  # type: ignore[arg-type]
