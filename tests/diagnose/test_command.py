"""`hotloop diagnose` as it is typed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hotloop.cli import diagnose
from hotloop.cli.app import run
from hotloop.model.errors import ExitCode
from hotloop.model.observation import Observation
from hotloop.observe.run.observe_command import Interrupted
from hotloop.store.session import new_session

from .observations import FINE, observed, with_phases, with_program

_SLOW_LOADER = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.zeros(4)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(Slow(), batch_size=4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _keep(folder: Path, observation: Observation, stamp: str) -> None:
    session = new_session(folder, stamp)
    session.put("observation", observation)
    session.close()


def test_without_a_command_the_newest_session_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _keep(folder, FINE, "20260101-000000")
    _keep(folder, with_phases(data=0.6), "20260102-000000")
    assert run(["diagnose"]) == ExitCode.DONE
    text = capsys.readouterr().out
    assert text.startswith("Input-bound: 60% of the step waits for data")
    assert "warning[loader-in-training-process]" in text
    assert "train.py:12" in text
    run(["diagnose", "--verbose"])
    assert "hotloop tune --only loader_workers" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("stage", ["observe", "with_limits"])
def test_what_was_measured_before_ctrl_c_is_kept_as_anything_else(
    stage: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise Interrupted(FINE)

    monkeypatch.setattr(diagnose, "before_run", lambda *_: ())
    monkeypatch.setattr(diagnose, "observe", lambda *_: FINE)
    monkeypatch.setattr(diagnose, stage, interrupted)
    assert run(["diagnose", "--json", "found.json", "python", "train.py"]) == ExitCode.INTERRUPTED
    said = capsys.readouterr()
    assert said.out.startswith("Compute-bound: 95%")
    assert said.err.endswith("hotloop: interrupted\n")
    assert json.loads((folder / "found.json").read_text())["session"]
    assert run(["report"]) == ExitCode.DONE


def test_ctrl_c_before_the_first_step_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise Interrupted(None)

    monkeypatch.setattr(diagnose, "before_run", lambda *_: ())
    monkeypatch.setattr(diagnose, "observe", interrupted)
    assert run(["diagnose", "--json", "found.json", "python", "train.py"]) == ExitCode.INTERRUPTED
    assert not (folder / "found.json").exists()


def test_a_session_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _keep(folder, FINE, "20260101-000000")
    _keep(folder, with_phases(data=0.6), "20260102-000000")
    assert run(["diagnose", "--session", "20260101-000000"]) == ExitCode.DONE
    assert "Compute-bound: 95%" in capsys.readouterr().out


def test_sessions_without_an_observation_are_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _keep(folder, FINE, "20260101-000000")
    new_session(folder, "20260102-000000").close()
    assert run(["diagnose"]) == ExitCode.DONE
    assert "Compute-bound" in capsys.readouterr().out


def test_no_session_says_what_to_type(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose"]) == ExitCode.USAGE
    assert "no session" in capsys.readouterr().err


def test_check_ends_with_1_on_a_warning_only(folder: Path) -> None:
    _keep(folder, FINE, "20260101-000000")
    assert run(["diagnose", "--check"]) == ExitCode.DONE
    _keep(folder, with_phases(other=0.5), "20260102-000000")
    assert run(["diagnose", "--check"]) == ExitCode.GATE
    _keep(folder, observed(foreign_share=0.9), "20260103-000000")
    assert run(["diagnose", "--check"]) == ExitCode.UNDECIDED, "the machine was too busy to judge"
    _keep(folder, observed(step=None), "20260104-000000")
    assert run(["diagnose", "--check"]) == ExitCode.UNDECIDED, "no step was measured"


def test_a_failed_program_ends_with_3(folder: Path) -> None:
    _keep(folder, observed(exit_code=7), "20260101-000000")
    assert run(["diagnose"]) == ExitCode.PROGRAM_FAILED


def test_json_has_the_names_of_the_contract(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _keep(folder, with_phases(data=0.6), "20260101-000000")
    assert run(["diagnose", "--format", "json", "--json", "found.json"]) == ExitCode.DONE
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((folder / "found.json").read_text())
    assert {"bottleneck", "findings", "abstained", "observation", "session", "schema"} <= set(said)
    first = said["findings"][0]
    assert first["code"] == "loader-in-training-process"
    assert first["cost_s"] == pytest.approx(0.06)
    assert first["gain"]["high"] == pytest.approx(2.5, rel=0.05)


def test_sarif_and_github(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _keep(folder, with_phases(data=0.6), "20260101-000000")
    run(["diagnose", "--format", "sarif"])
    log = json.loads(capsys.readouterr().out)
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    help_texts = {rule["id"]: rule["help"]["text"] for rule in rules}
    assert "## Why it is slow" in help_texts["loader-in-training-process"]
    run(["diagnose", "--format", "github"])
    assert capsys.readouterr().out.startswith(
        "::warning file=train.py,line=12,title=loader-in-training-process"
    )


def test_verbose_lists_what_abstained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _keep(folder, FINE, "20260101-000000")
    run(["diagnose", "--verbose"])
    said = " ".join(capsys.readouterr().out.split())
    assert "slow-start a run that came to its own end (--full)" in said


@pytest.mark.parametrize(
    "words", [["--steps", "5"], ["--session", "x", "train.py"], ["--steps", "5", "--full", "train.py"]]
)
def test_options_that_do_not_go_together(folder: Path, words: list[str]) -> None:
    assert run(["diagnose", *words]) == ExitCode.USAGE


def test_explain_shows_measured_and_static_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "slow-start"]) == ExitCode.DONE
    assert "measured by: `hotloop diagnose`" in capsys.readouterr().out
    assert run(["explain", "unpinned-memory"]) == ExitCode.DONE
    text = capsys.readouterr().out
    assert text.count("# unpinned-memory") == 2
    assert text.index("measured by") < text.index("- fix: ")


_ROWS = """import torch

torch.autograd.set_detect_anomaly(True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    loss = model(torch.zeros(8, 4)).sum()
    loss.backward()
    optimizer.step()
    torch.save(model.state_dict(), "last.pt")
"""


def test_the_source_gives_lines_to_what_was_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = folder / "rows.py"
    script.write_text(_ROWS)
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    _keep(
        folder, with_program(anomaly_mode=True, script=str(script), script_sha256=digest), "20260101-000000"
    )
    run(["diagnose", "--format", "json"])
    findings = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert (findings["anomaly-mode-on"]["path"], findings["anomaly-mode-on"]["line"]) == ("rows.py", 3)
    unpriced = findings["per-step-checkpoint"]
    assert (unpriced["line"], unpriced["severity"], unpriced["cost_s"]) == (10, "info", None)


def test_a_comment_at_the_line_switches_a_finding_off(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _keep(folder, with_phases(data=0.6), "20260101-000000")
    (folder / "train.py").write_text(
        "\n" * 11 + "loader = ...  # hotloop: ignore[loader-in-training-process]\n"
    )
    run(["diagnose"])
    assert "loader-in-training-process" not in capsys.readouterr().out


def test_a_script_that_was_changed_since_is_not_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = folder / "rows.py"
    script.write_text(_ROWS)
    _keep(
        folder, with_program(anomaly_mode=True, script=str(script), script_sha256="0" * 64), "20260101-000000"
    )
    run(["diagnose", "--format", "json"])
    findings = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["anomaly-mode-on"]["path"] is None
    assert "per-step-checkpoint" not in findings


@pytest.mark.slow
def test_a_real_program_is_observed_kept_and_diagnosed(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text(_SLOW_LOADER)
    assert run(["diagnose", "--quiet", "--steps", "10", "train.py"]) == ExitCode.DONE
    first = capfd.readouterr().out
    assert "Input-bound: 9" in first
    assert "warning[loader-in-training-process]" in first
    assert "\n  where  train.py:16\n  seen   num_workers=0" in first
    assert run(["diagnose", "--quiet"]) == ExitCode.DONE
    assert capfd.readouterr().out == first
