"""Why no step was measured: each cause has its own words."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.launch.deadline import Deadline
from hotloop.observe.coverage import no_step, syntax_error

from ..report.test_observation_screen import observation


@pytest.mark.parametrize(
    ("seen", "timed_out", "said"),
    [
        ((), True, "the time was over before your program had even imported torch"),
        (("python-1",), True, "the time was over before your program had even imported torch"),
        (("python-1",), False, "the program never imported torch"),
        (("python-1", "torch-1"), True, "the time was over before your program had taken two steps"),
        (("python-1", "torch-1"), False, "the program took no step"),
        ((), False, "'python' started no Python"),
    ],
)
def test_why(seen: tuple[str, ...], timed_out: bool, said: str, tmp_path: Path) -> None:
    for name in seen:
        (tmp_path / name).touch()
    run: Any = SimpleNamespace(scratch=tmp_path)
    without = observation(step=None, phases={}, exit_code=None if timed_out else 0)
    late = Deadline(300.0, "--budget") if timed_out else None
    error = no_step(without, run, tmp_path, {}, ["python", "train.py"], late=late, lost=False)
    assert error.message.startswith(said)
    assert error.observation.why_no_step == f"{error.message} ({error.hint})"
    if timed_out:
        assert error.hint == "give it more time: --budget 600"


def test_a_syntax_error_is_said_with_its_place(tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text("import torch\nfor x in range(3)\n    pass\n")
    (tmp_path / "python-1").touch()
    run: Any = SimpleNamespace(scratch=tmp_path)
    without = observation(step=None, phases={}, exit_code=1)
    argv = [sys.executable, str(script)]
    error = no_step(without, run, tmp_path, {}, argv, late=None, lost=False)
    assert error.message == f"your program cannot be read as Python: {script}:2: expected ':'"


@pytest.mark.parametrize("text", ["x = 1\n", None], ids=["sound", "missing"])
def test_a_script_without_a_syntax_error_has_none(text: str | None, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    if text is not None:
        script.write_text(text)
    assert syntax_error(script) is None
