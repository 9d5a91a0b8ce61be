"""A program that failed is tried once without the probe: whose failure it was is told by how that ends."""

from __future__ import annotations

import math
import os
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


Verdict = Callable[..., str]


@pytest.fixture
def verdict(told: list[str]) -> Verdict:
    """Says whose failure exit code 1 was, where the program ends so without hooks, then without anything of ours."""

    def says(
        *endings: tuple[int | None, str],
        exceptions: Exceptions | None = None,
        alone: Isolation | None = Isolation(denied=True, unconnected=True),  # noqa: B008  # frozen
        isolation: Isolation | None = None,
    ) -> str:
        left, clock = list(endings), [0.0]

        def start(*_: Any, **__: Any) -> Any:
            code, log = left.pop(0)
            return SimpleNamespace(exit_code=lambda: code, end=lambda: None, log_end=lambda: log)

        def sleep(seconds: float) -> None:
            clock[0] += seconds

        said = blame.whose(
            ["python", "train.py"],
            {},
            exceptions or Exceptions(),
            1,
            10.0,
            told.append,
            lambda _: None,
            math.inf,
            isolation,
            blame.Means(start, lambda *_: alone, lambda: clock[0], sleep),
        )
        assert not left, "a run that tells nothing more is not made"
        return said

    return says


VALUE = "Traceback\n  File 'train.py'\nValueError: batch 7 at 0x7f01"


@pytest.mark.parametrize(
    ("endings", "said"),
    [
        (
            [(1, VALUE), (1, VALUE.replace("7f01", "7e02"))],
            "the same exit code 1: the failure is the program's own",
        ),
        ([(7, VALUE), (7, VALUE)], "with exit code 7 instead of 1: look at the program first"),
        ([(0, "")], "without hotloop's hooks it ends well: THE FAILURE IS HOTLOOP'S"),
        ([(1, VALUE), (0, "")], "without hotloop's isolation it ends well: THE FAILURE IS HOTLOOP'S"),
        ([(None, "")], "it had not failed after 40 s and was ended: the failure may be hotloop's"),
        (
            [(1, VALUE), (1, "PermissionError: 'new'")],
            "was not judged (with its writes denied it fails otherwise)",
        ),
        ([(1, VALUE), (None, "")], "was not judged"),
    ],
)
def test_whose_failure_it_was(endings: list[tuple[int | None, str]], said: str, verdict: Verdict) -> None:
    assert said in verdict(*endings)


def test_what_is_not_judged_is_shown_as_it_is(verdict: Verdict) -> None:
    """Without a kernel that keeps writes away, the program is not run with the user's own files."""
    said = verdict((1, VALUE), alone=None)
    assert "its last words are: ValueError: batch 7" in said
    assert "was not judged (the kernel cannot keep its writes away here)" in said
    assert "Try: python train.py" in said


def test_who_allows_all_writes_has_it_judged_by_a_run_of_his_own(verdict: Verdict) -> None:
    said = verdict((1, VALUE), (1, VALUE), alone=None, exceptions=Exceptions(all_writes=True))
    assert "the failure is the program's own" in said


@pytest.mark.parametrize(
    ("isolation", "log", "said"),
    [
        (
            Isolation(covered=True),
            "OSError: [Errno 75] Value too large for defined data type: '/x/y'",
            "the failure is hotloop's. Let it write there: --writable",
        ),
        (Isolation(covered=True), "OSError: [Errno 30] Read-only file system: '/sys/x'", "--writable"),
        (Isolation(covered=True, network=True), "ConnectionRefusedError: Connection refused", "--network"),
        (Isolation(guarded=True, denied=True), "PermissionError: Permission denied: 'x'", "--writable"),
    ],
)
def test_the_isolation_s_own_errors_are_known_and_the_option_named(
    isolation: Isolation, log: str, said: str, verdict: Verdict
) -> None:
    assert said in verdict((1, log), (1, "another"), isolation=isolation)


def test_that_it_runs_again_is_said_before_it_does(told: list[str], verdict: Verdict) -> None:
    isolation = Isolation(covered=True)
    verdict((0, ""), isolation=isolation)
    (said,) = told
    assert said.startswith("your program failed (exit code 1); running it again without hotloop's hooks")
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
    verdict: Verdict,
) -> None:
    verdict((0, ""), isolation=isolation)
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


def test_a_program_whose_output_nobody_reads_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "torch-1").touch()
    run: Any = SimpleNamespace(scratch=tmp_path)
    reader, writer = os.pipe()
    assert blame.may_be_ours(run, 1, 5.0, writer)
    os.close(reader)
    assert not blame.may_be_ours(run, 1, 5.0, writer)
    os.close(writer)
