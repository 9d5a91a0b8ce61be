"""What `hotloop trace analyze` and `hotloop lint` show, from made-up input."""

from __future__ import annotations

import json
from pathlib import Path

from hotloop.report.sections.trace.report import trace_document
from hotloop.report.terminal.walk import render
from hotloop.trace.ranks.study import analyze

from ..trace.conftest import example_trace
from .results import shown
from .snapshots import matches


def test_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(example_trace()))
    assert matches("trace", render(trace_document(analyze(path), (), 10), verbose=True))


def test_a_trace_without_a_device_has_no_columns_of_one(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    text = shown(render(trace_document(analyze(path), (), 10)))
    assert "operators  calls  host ms\naten::add      1   0.0050" in text
