"""What comes of a run that ends before every change had its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hotloop.launch.isolation.decide import Isolation
from hotloop.model.observation import Anchor
from hotloop.whatif import run as module
from hotloop.whatif.run import Outcome, Report, Setting

ORDERS = [{"name": name} for name in ("layout", "threads", "compile")]
SETTING = Setting(
    argv=("true",),
    environment={},
    isolation=Isolation(),
    anchor=Anchor("optimizer", 0),
    shape={},
    limit_s=60.0,
)


def ran(
    monkeypatch: pytest.MonkeyPatch, *starts: tuple[Report | None, int | None, str]
) -> tuple[Outcome, list[list[str]]]:
    """Run against starts of the program that went so; return what each of them was asked for, too."""
    asked: list[list[str]] = []

    def once(
        _: Setting, orders: Sequence[dict[str, Any]], *__: object
    ) -> tuple[Report | None, int | None, str]:
        asked.append([order["name"] for order in orders])
        return starts[len(asked) - 1]

    monkeypatch.setattr(module, "_once", once)
    return module.run(SETTING, ORDERS, lambda _: None), asked


def report(*seen: str, current: str | None = None, done: bool = False) -> Report:
    return Report(
        pid=1,
        rank=None,
        blocks=tuple((name, (1.0,)) for name in seen for _ in range(3)),
        current=current,
        done=done,
    )


def test_a_change_that_ends_the_program_is_named_and_the_others_are_tried_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crashed = (report(current="layout"), 1, "the program ended with exit code 1: view size is not compatible")
    outcome, asked = ran(monkeypatch, crashed, (report("threads", "compile", done=True), None, ""))
    assert asked == [["layout", "threads", "compile"], ["threads", "compile"]]
    assert len(outcome.gaps) == 1
    assert outcome.gaps[0].startswith("layout: the program ended with exit code 1")


def test_what_there_was_no_time_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, asked = ran(monkeypatch, (report("layout", current="threads"), None, module.TIME_OVER))
    assert len(asked) == 1
    assert outcome.gaps == ("threads, compile: the time for it was over",)


def test_a_program_that_comes_to_its_end_goes_on_in_another_start(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = (report("layout", current="threads"), 0, "the program ended with exit code 0")
    outcome, asked = ran(monkeypatch, ended, (report("threads", "compile", done=True), None, ""))
    assert asked == [["layout", "threads", "compile"], ["threads", "compile"]]
    assert outcome.gaps == ()


def test_a_program_too_short_for_anything_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, asked = ran(monkeypatch, (report(), 0, "the program ended with exit code 0"))
    assert len(asked) == 1
    assert outcome.gaps == ("layout, threads, compile: the program ended with exit code 0",)


def test_a_program_that_never_came_to_a_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _ = ran(monkeypatch, (None, 2, "the program ended with exit code 2: no data"))
    assert outcome.reports == ()
    assert outcome.gaps == ("layout, threads, compile: the program ended with exit code 2: no data",)


def test_a_change_that_the_end_cut_short_goes_on_in_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Report(pid=1, rank=None, blocks=((None, (1.0,)), ("layout", (1.0,)), (None, (1.0,))))
    rest = report("layout", "threads", "compile", done=True)
    _, asked = ran(monkeypatch, (cut, 0, "the program ended with exit code 0"), (rest, None, ""))
    assert asked == [["layout", "threads", "compile"]] * 2
