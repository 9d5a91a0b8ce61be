"""A program that failed is tried once without the probe: whose failure it was is told by how that ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.launch.isolation.decide import Exceptions, Isolation
from hotloop.observe.run import blame


@pytest.fixture
def told() -> list[str]:
    """What is said before the program runs again."""
    return []


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> Callable[[int | None], str]:
    """Says whose failure exit code 1 was, where the program ends so without the probe; None: it still runs."""
    clock = [0.0]

    def wait(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(blame, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=wait))

    def says(alone: int | None) -> str:
        run = SimpleNamespace(exit_code=lambda: alone, end=lambda: None)
        monkeypatch.setattr(blame, "start", lambda *_, **__: run)
        argv = ["python", "train.py"]
        return blame.whose(argv, {}, Exceptions(), 1, 10.0, told.append, lambda _: None, math.inf)

    return says


@pytest.mark.parametrize(
    ("alone", "said"),
    [
        (1, "with the same exit code 1: the failure is the program's own"),
        (7, "with exit code 7 instead of 1: look at the program first"),
        (0, "it ends well: THE FAILURE IS HOTLOOP'S"),
        (None, "it had not failed after 40 s and was ended: the failure may be hotloop's"),
    ],
)
def test_whose_failure_it_was(alone: int | None, said: str, verdict: Callable[[int | None], str]) -> None:
    assert said in verdict(alone)


def test_that_it_runs_again_is_said_before_it_does(
    told: list[str], verdict: Callable[[int | None], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    isolation = Isolation(covered=True)
    monkeypatch.setattr(blame, "plan_isolation", lambda *_, **__: isolation)
    verdict(1)
    (said,) = told
    assert said.startswith("your program failed (exit code 1); running it once more without hotloop's hooks")
    assert said.endswith("what it writes is thrown away")


@pytest.mark.parametrize(
    ("isolation", "said"),
    [
        (Isolation(covered=True, writable=("/data",)), "what it writes is thrown away, but not in /data"),
        (Isolation(guarded=True, uncovered="some"), "it may change your files, as before (--allow-writes)"),
    ],
)
def test_what_a_second_run_may_change_is_said(
    isolation: Isolation,
    said: str,
    told: list[str],
    verdict: Callable[[int | None], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blame, "plan_isolation", lambda *_, **__: isolation)
    verdict(1)
    assert told[0].endswith(said)


@pytest.mark.parametrize(
    ("code", "lived_s", "torch", "asked"),
    [
        (1, 5.0, True, True),
        (0, 5.0, True, False),
        (None, 5.0, True, False),
        (130, 5.0, True, False),
        (1, 2 * blame.LONGEST_S, True, False),
        (1, 5.0, False, False),
    ],
    ids=["failed", "ended well", "was ended", "Ctrl-C", "too late", "no torch"],
)
def test_only_a_program_that_failed_soon_is_tried_again(
    code: int | None, lived_s: float, torch: bool, asked: bool, tmp_path: Path
) -> None:
    (tmp_path / "probe").mkdir()
    if torch:
        (tmp_path / "probe" / "torch-1").touch()
    run: Any = SimpleNamespace(scratch=tmp_path)
    assert blame.may_be_ours(run, code, lived_s) == asked


def test_a_program_whose_output_nobody_reads_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "torch-1").touch()
    run: Any = SimpleNamespace(scratch=tmp_path)
    monkeypatch.setattr(blame, "could_not_enter", lambda *_: False)
    monkeypatch.setattr(blame, "nobody_reads", lambda: False)
    assert blame.may_be_ours(run, 1, 5.0)
    monkeypatch.setattr(blame, "nobody_reads", lambda: True)
    assert not blame.may_be_ours(run, 1, 5.0)
