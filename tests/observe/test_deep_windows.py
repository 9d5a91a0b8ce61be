"""Steps that a profiler looked at are kept apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotloop.model.observation import Anchor
from hotloop.observe.decode.processes import failure_of
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.run_account.account import account
from hotloop.observe.steps.ranks import steady_windows
from hotloop.observe.steps.step_windows import windows
from hotloop.probe.record.events import Kind, begin, end

from .synthetic import Script

_STEP = Anchor("optimizer", 0, 1)


@pytest.fixture
def looked(tmp_path: Path) -> Timeline:
    """Ten light steps of 8 ms, a window over three that take twice as long, and two more light ones."""
    script = Script(tmp_path).train(11)
    script.mark(begin(Kind.DEEP, 1)).wait(4)
    for _ in range(3):
        script.train(1).wait(8)
    script.wait(5).mark(end(Kind.DEEP, 1)).train(2)
    return script.timeline()


def test_they_are_no_steady_steps(looked: Timeline) -> None:
    steady = steady_windows(looked, _STEP)
    assert steady
    assert max(step.duration_s for step in steady) == pytest.approx(8e-3)
    assert [step.deep for step in windows(looked, _STEP)] == [False] * 10 + [True] * 4 + [False]


def test_nor_are_those_after_them(looked: Timeline) -> None:
    assert all(step.end_s <= looked.deep[0].begin_s for step in steady_windows(looked, _STEP))


def test_the_account_names_them(looked: Timeline) -> None:
    parts = account(looked, _STEP, 0.0, looked.spans[-1].end_s).parts
    touched = [step for step in windows(looked, _STEP) if step.deep]
    assert parts["deep_windows_s"] == pytest.approx(touched[-1].end_s - touched[0].begin_s)


def test_a_window_may_begin_inside_one_span_and_end_inside_another(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for number in range(6):
        script.mark(begin(Kind.OPTIMIZER)).span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3)
        if number in (2, 4):
            script.mark(begin(Kind.DEEP, 1) if number == 2 else end(Kind.DEEP, 1))
        script.wait(1).mark(end(Kind.OPTIMIZER))
    timeline = script.timeline()
    assert [span.kind for span in timeline.spans].count(Kind.OPTIMIZER) == 6
    assert all(span.depth == 0 for span in timeline.spans if span.kind is Kind.OPTIMIZER)
    assert len(timeline.deep) == 1


def test_a_probe_that_cannot_look_says_why(tmp_path: Path) -> None:
    """The launcher does not wait for windows that nobody will open."""
    note = {
        "where": "deep",
        "error": "Traceback (most recent call last):\n  ...\nImportError: no such module\n",
    }
    (tmp_path / "process-7.json").write_text(json.dumps({"pid": 7, "notes": [note]}))
    assert failure_of(tmp_path, 7, "deep") == "ImportError: no such module"
    assert failure_of(tmp_path, 7, "whatif") is None
    assert failure_of(tmp_path, 8, "deep") is None
