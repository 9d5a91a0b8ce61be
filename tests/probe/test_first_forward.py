"""A program that somebody holds waits before its first forward, and again only at the boundaries of its steps."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hotloop.probe.control.control_page import (
    GO_UNTIL,
    STATE,
    STEPS,
    UNLIMITED,
    WAITING,
    ControlPage,
)
from hotloop.probe.control.step_boundary import Boundary
from hotloop.probe.record.events import Kind
from hotloop.probe.record.recorder import Recorder


def _boundary(folder: Path, page: ControlPage | None) -> Boundary:
    return Boundary(("optimizer", 0, 1), folder, Recorder(folder), page)


def test_it_waits_and_leaves_the_page_until_it_steps(tmp_path: Path) -> None:
    """Who forwards may never step: a summary of the model, before processes are spawned that train it."""
    page = ControlPage.create(tmp_path / "control", go_until=0)
    boundary = _boundary(tmp_path, page)
    program = threading.Thread(target=boundary.before_first_forward, daemon=True)
    program.start()
    deadline = time.monotonic() + 30
    while not any(row[STATE] == WAITING for row in page.rows()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert [row[STEPS] for row in page.rows()] == [0]
    page.numbers[GO_UNTIL] = 4
    program.join(30)
    assert not program.is_alive()
    assert page.rows() == []
    boundary.ended(Kind.OPTIMIZER, 0)
    assert [row[STEPS] for row in page.rows()] == [1]
    assert [path.name for path in tmp_path.glob("seat-*")] == ["seat-0"]


def test_nobody_waits_who_may_go_on(tmp_path: Path) -> None:
    page = ControlPage.create(tmp_path / "control", go_until=UNLIMITED)
    for boundary in (_boundary(tmp_path, page), _boundary(tmp_path, None)):
        boundary.before_first_forward()
        assert not boundary.starts
    assert page.rows() == []


def test_ranks_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipeline the second one's first forward needs what the first one's gives."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    page = ControlPage.create(tmp_path / "control", go_until=0)
    _boundary(tmp_path, page).before_first_forward()
    assert page.rows() == []
