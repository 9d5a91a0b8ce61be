"""What `hotloop trace analyze` and `hotloop lint` show, from made-up input."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Group

from hotloop.report.terminal.screen import Screen
from hotloop.report.terminal.trace import render_next, show_report
from hotloop.trace.ranks.study import analyze

from ..trace.conftest import example_trace
from .results import shown
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


def test_a_trace_without_a_device_has_no_columns_of_one(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    kept = Kept()
    show_report(kept, analyze(path), 10)
    text = shown(Group(*kept.parts))  # type: ignore[arg-type]
    assert "operators calls host ms\naten::add     1  0.0050" in text
