"""A run that took no step is kept, and what reads it says why there is nothing to see."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from hotloop.cli import diagnose, observe
from hotloop.cli.app import run
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.observe.coverage import NoStepError

from ..report.test_observation_screen import observation

WHY = HotloopError("the program took no step", "check that it trains", ExitCode.PROGRAM_FAILED)


def _takes_none(*_: object) -> NoReturn:
    raise NoStepError(WHY, observation(step=None, phases={}, exit_code=0))


@pytest.mark.parametrize("module", [observe, diagnose], ids=["observe", "diagnose"])
def test_diagnose_and_report_repeat_why_there_is_no_step(
    module: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "observe", _takes_none)
    monkeypatch.setattr(module, "before_run", lambda *_: ())
    name = "observe" if module is observe else "diagnose"
    assert run([name, "python", "train.py"]) == ExitCode.PROGRAM_FAILED
    assert "the program took no step" in capsys.readouterr().err
    assert run(["diagnose"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("No step was measured: the program took no step (check that it trains).")
    assert "hotloop observe python train.py" in said
    assert "hotloop tune" not in said
    assert run(["report"]) == 0
    assert "the program took no step" in " ".join(capsys.readouterr().out.split())
    assert run(["sessions"]) == 0
    assert "no step was measured" in capsys.readouterr().out


def test_a_session_that_cannot_be_kept_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".hotloop").write_text("in the way")
    monkeypatch.setattr(observe, "observe", _takes_none)
    monkeypatch.setattr(observe, "before_run", lambda *_: ())
    assert run(["observe", "python", "train.py"]) == ExitCode.PROGRAM_FAILED
    assert "the program took no step" in capsys.readouterr().err
