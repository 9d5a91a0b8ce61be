"""`hotloop compare` and `hotloop check` on real programs and on stored samples."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from hotloop.cli.app import run
from hotloop.cli.programs import Programs
from hotloop.machine.environment.command_packages import packages_of
from hotloop.machine.host.identity import fingerprint, identity
from hotloop.model.comparison import Comparison
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.gate import ClassBaseline, GateBaseline, GateRun
from hotloop.observe.run.stopping import StopRule
from hotloop.report.sections.comparison import comparison_document
from hotloop.review.changes import MAX_CHANGES, changes
from hotloop.stats.verdict import Decision, decide
from hotloop.store.session import new_session
from hotloop.tune.compare import program as of_program
from hotloop.tune.compare.compare import compare_observations, compare_programs
from hotloop.tune.compare.gate import gate_run
from hotloop.tune.compare.pairs import PairRecord
from hotloop.tune.compare.program import Program

from ..diagnose.observations import FINE
from ..report.rich_session import content, tuning
from ..tune.plans import WORKERS, write_plan

PROGRAM = """
import torch
{setting}
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(100000):
    optimizer.zero_grad()
    for _ in range({turns}):
        loss = model(torch.randn(64, 32)).sum()
    loss.backward()
    optimizer.step()
"""


SIMULATED = Programs(resolve=list, look=lambda *_: ())
"""Nothing is run; each test says what is measured."""


def _program(path: Path, turns: int = 20, setting: str = "") -> None:
    path.write_text(PROGRAM.format(turns=turns, setting=setting))


def test_two_sessions_are_compared_with_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = content(60, tuned=False)
    assert said.observation is not None
    assert said.observation.step is not None
    assert said.origin is not None
    step = said.observation.step
    faster = msgspec.structs.replace(
        step,
        median_s=step.median_s / 2,
        low_s=step.low_s / 2,
        high_s=step.high_s / 2,
        samples_per_s=2 * (step.samples_per_s or 0),
    )
    sides = (
        (said.observation, said.origin),
        (
            msgspec.structs.replace(said.observation, step=faster),
            msgspec.structs.replace(said.origin, packages={"torch": "2.14.0", "numpy": "2.3.0"}),
        ),
    )
    for number, (seen, of) in enumerate(sides):
        with contextlib.closing(new_session(tmp_path, f"s{number}")) as session:
            session.put("observation", seen)
            session.put("origin", of)
    assert run(["report", "s0", "s1", "--html", "c.html", "--markdown", "c.md", "--json", "c.json"]) == 0
    assert "s1 is faster than s0: 2.00x as fast [" in " ".join(capsys.readouterr().out.split())
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["verdict"] == "faster"
    assert found["changes"] == [{"what": "package torch", "before": "2.13.0", "after": "2.14.0"}]
    assert "2.14.0" in (tmp_path / "c.html").read_text()
    assert run(["compare", "s0", "s0"]) == 0
    assert "No difference between s0 and s0 was proven" in " ".join(capsys.readouterr().out.split())


def test_packages_that_are_not_known_are_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bash train.sh` does not say which Python it starts."""
    monkeypatch.chdir(tmp_path)
    said = content(60, tuned=False)
    assert said.origin is not None
    for name, packages in (("s0", {}), ("s1", {"numpy": "2.3.0", "torch": "2.13.0"})):
        with contextlib.closing(new_session(tmp_path, name)) as session:
            session.put("observation", said.observation)
            session.put("origin", msgspec.structs.replace(said.origin, packages=packages))
    assert run(["compare", "--json", "c.json", "s0", "s1"]) == 0
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["changes"] == [{"what": "packages", "before": "unknown", "after": "2 packages"}]


def test_changes_that_are_left_out_are_counted() -> None:
    seen = content(60, tuned=False).observation
    assert seen is not None
    found = changes(seen, seen, ({}, {f"package-{number}": "1.0" for number in range(MAX_CHANGES + 7)}))
    assert (len(found), found[-1].what) == (MAX_CHANGES + 1, "and 7 more")


def test_a_busy_machine_is_said_before_the_verdict() -> None:
    seen = content(60, tuned=False).observation
    assert seen is not None
    busy = msgspec.structs.replace(seen, foreign_share=0.4)
    shape = comparison_document(compare_observations(seen, busy, ("s0", "s1")))
    assert shape.verdict.startswith(
        "This machine was too busy to judge: other processes used 40% of the CPU."
    )
    assert shape.good is None
    quiet = comparison_document(compare_observations(seen, seen, ("s0", "s1")))
    assert "busy" not in quiet.verdict


def test_the_machine_is_looked_at_before_two_commands_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = content(60, tuned=False).observation
    assert seen is not None
    told: list[str] = []

    def observed(name: str, *_: object) -> Program:
        told.append(name)
        return Program(name=name, words=(name,), argv=(name,), folder=tmp_path, observation=seen)

    programs = SIMULATED._replace(
        look=lambda *_: told.append("looked"),
        observe=observed,
        duet=lambda *_, **__: compare_observations(seen, seen, ("a", "b")),
    )
    assert run(["compare", "python a.py", "python b.py"], programs=programs) == 0
    assert told == ["looked", "python a.py", "python b.py"]


def test_packages_of_two_commands_are_those_of_their_own_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = content(60, tuned=False).observation
    assert seen is not None
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the user, with the name of ours')\n")
    for name, version in (("old", "1.0"), ("new", "2.0")):
        info = tmp_path / name / f"quick_thing-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: quick-thing\nVersion: {version}\n")
    script = tmp_path / "launch"
    script.write_text(f"#!{sys.executable}\nraise SystemExit('it is only asked where its Python is')\n")
    commands = {
        "old": ("/usr/bin/env", f"PYTHONPATH={tmp_path / 'old'}", sys.executable, "train.py"),
        "new": ("/usr/bin/env", f"PYTHONPATH={tmp_path / 'new'}", str(script), "train.py"),
    }

    def observed(name: str, *_: object) -> Program:
        return Program(name=name, words=(name,), argv=commands[name], folder=tmp_path, observation=seen)

    programs = SIMULATED._replace(
        observe=lambda name, *_: observed(name.split()[0]),
        duet=lambda *_, **__: compare_observations(seen, seen, ("a", "b")),
    )
    words = ["compare", "--json", "c.json", "old train.py", "new train.py"]
    assert run(words, programs=programs) == 0
    changes = json.loads((tmp_path / "c.json").read_text())["changes"]
    assert changes == [{"what": "package quick-thing", "before": "1.0", "after": "2.0"}]


def test_of_a_program_that_is_no_python_no_packages_are_known(tmp_path: Path) -> None:
    assert packages_of(["/bin/sh", "-c", "python train.py"], tmp_path) is None
    assert packages_of(["/usr/bin/env", "X=1"], tmp_path) is None


def test_what_is_neither_a_session_nor_a_command_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["compare", "nosuch", "other"]) == 2
    assert "neither a session here nor a command" in capsys.readouterr().err


def test_a_quote_that_is_not_closed_is_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["compare", "python it's.py", "python train.py"]) == 2
    assert "defect" not in capsys.readouterr().err


def test_two_tuned_sessions_are_compared_by_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = content(60)
    results = (tuning(2, [("a", 1.5), ("b", 1.2)]), tuning(2, [("a", 1.4)]), None)
    for number, result in enumerate(results):
        with contextlib.closing(new_session(tmp_path, f"s{number}")) as session:
            session.put("observation", said.observation)
            if result is not None:
                session.put("result", result)
    assert run(["compare", "--json", "c.json", "--markdown", "c.md", "s0", "s1"]) == 0
    printed = capsys.readouterr().out
    rows = (
        "the plan, confirmed  1.80x [1.73, 1.89]  1.40x [1.34, 1.47]",
        "b 1.20x [1.16, 1.24] not in the plan",
        "learning the same the same",
    )
    for row in rows:
        assert " ".join(row.split()) in " ".join(printed.split())
    assert json.loads((tmp_path / "c.json").read_text())["tuned"][1]["speedup"]["ratio"] == pytest.approx(1.4)
    assert "not in the plan" in (tmp_path / "c.md").read_text()
    assert run(["compare", "s0", "s2"]) == 0
    assert "not tuned" in capsys.readouterr().out


def test_secrets_of_compared_commands_are_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value of no known shape, known as a secret by the option before it."""
    monkeypatch.chdir(tmp_path)
    seen = content(60, tuned=False).observation
    assert seen is not None
    ran: list[tuple[str, ...]] = []

    def observed(name: str, words: tuple[str, ...], folder: Path, *_: object) -> Program:
        ran.append(words)
        return Program(name=name, words=words, argv=words, folder=folder, observation=seen)

    def paired(*_: object, scale: float) -> tuple[list[PairRecord], Decision]:
        records = [PairRecord(rounds=((0.2, 0.1),) * 6, phases=({}, {}), peak_bytes=(None, None))] * 3
        return records, decide([record.log_ratios(scale) for record in records], floor=0.01)

    programs = SIMULATED._replace(observe=observed, duet=partial(compare_programs, pairs=paired))
    files = ["c.html", "c.md", "c.json"]
    words = ["compare", "--html", files[0], "--markdown", files[1], "--json", files[2]]
    assert (
        run([*words, "python a.py --token t0psecret", "python b.py --token t0psecret"], programs=programs)
        == 0
    )
    assert ran[0] == ("python", "a.py", "--token", "t0psecret"), "the program itself gets it"
    told = capsys.readouterr()
    for text in (told.out, told.err, *((tmp_path / file).read_text() for file in files)):
        assert "t0psecret" not in text
    assert "python b.py --token REDACTED is faster" in " ".join(told.out.split())


def _baseline(file: Path, factor: float) -> None:
    draw = np.random.default_rng(1)
    runs = tuple(
        GateRun(steps_s=tuple((factor * 0.1 * np.exp(draw.normal(0, 0.02, 50))).tolist())) for _ in range(3)
    )
    mine = ClassBaseline(machine={}, measured_at="2026-11-22", commit=None, runs=runs)
    known = GateBaseline(command=("python", "x.py"), classes={fingerprint(identity()): mine})
    file.write_bytes(msgspec.json.encode(known))


@pytest.mark.parametrize(
    ("factor", "foreign", "delay", "code", "says"),
    [
        (1.0, 0.0, 0.0, 0, "passed: .* (no difference is proven;"),
        (1.04, 0.0, 0.0, 0, "passed: .* (faster;"),
        (0.96, 0.0, 0.0, 0, "passed: a slowdown is not proven: .* (slower;"),
        (0.7, 0.0, 0.0, 1, "FAILED: .* (slower;"),
        (0.7, 0.4, 0.1, 5, "could not judge: .* can have made the difference"),
        (0.96, 0.4, 0.1, 5, "could not judge: .* nor within it"),
        (1 / 12, 0.4, 0.95, 5, "could not judge: .* can have made the difference"),
        (1 / 12, 0.4, 1.5, 5, "could not judge: .* can have made the difference"),
        (1 / 12, 0.4, 0.5, 1, "FAILED: .* which explains no more than 4.00 times"),
        (1 / 12, 0.4, None, 5, "could not judge: .* can have made the difference"),
        (1 / 40, 0.4, None, 1, "FAILED: .* which explains no more than 25.00 times"),
        (1.5, 0.0, 0.0, 0, "passed: .* (faster;"),
        (1.5, 0.4, 0.9, 0, "passed: .* but they cannot have made the program faster"),
    ],
)
def test_a_gate_fails_on_a_proven_slowdown_alone(
    factor: float,
    foreign: float,
    delay: float | None,
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    _baseline(tmp_path / "base.json", factor)
    draw = np.random.default_rng(2)

    def fake(*_: object) -> GateRun:
        return GateRun(
            steps_s=tuple((0.1 * np.exp(draw.normal(0, 0.02, 50))).tolist()),
            foreign_share=foreign,
            delay_ratio=delay,
        )

    looked_at: list[tuple[str, ...]] = []
    programs = SIMULATED._replace(gate_run=fake, look=lambda _, words: looked_at.append(words))
    words = ["check", "--baseline", "base.json", "--junit", "j.xml", "--markdown", "m.md", "--json", "v.json"]
    command = ["python", "x.py", "--name", "<b>&x", "--token", "t0psecret"]
    assert run([*words, "--github", *command], programs=programs) == code
    first, _, second = says.partition(".*")
    printed = capsys.readouterr().out
    told = " ".join(printed.split())
    assert "the baseline was measured of another command, python x.py" in told
    level = "error" if code == 1 else "warning" if code or "not proven" in first else "notice"
    annotations = [line for line in printed.splitlines() if line.startswith("::")]
    assert [line.partition("::a step took ")[0] for line in annotations] == [f"::{level} title=hotloop check"]
    for text in (printed, *((tmp_path / file).read_text() for file in ("j.xml", "m.md", "v.json"))):
        assert "t0psecret" not in text
    assert f"hotloop check {first}" in told
    assert second in told
    busy = told.find("This machine was too busy to judge: other processes used 40% of the CPU")
    assert (0 <= busy < told.find(f"hotloop check {first}")) if code == 5 else busy < 0
    assert looked_at == [tuple(command)]
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.attrib["failures"], suite.attrib["errors"]) == (str(int(code == 1)), str(int(code == 5)))
    assert suite[0].attrib["name"] == "python x.py --name '<b>&x' --token REDACTED"
    assert ("failed" in summary.read_text()) == (code == 1)
    assert json.loads((tmp_path / "v.json").read_text())["passed"] == (not code)


def test_a_baseline_of_a_busy_machine_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that is as slow as it was beside others may have got slower."""
    monkeypatch.chdir(tmp_path)
    runs = iter([GateRun(steps_s=(0.1,) * 50, foreign_share=0.5, delay_ratio=0.6)] * 3)
    quiet = GateRun(steps_s=(0.1,) * 50, foreign_share=0.0)
    programs = SIMULATED._replace(gate_run=lambda *_: next(runs, quiet))
    assert run(["check", "--baseline", "base.json", "--update", "python", "x.py"], programs=programs) == 0
    assert "make the baseline again on a quiet machine" in " ".join(capsys.readouterr().err.split())
    assert run(["check", "--baseline", "base.json", "python", "x.py"], programs=programs) == 5
    assert "when the baseline was made" in " ".join(capsys.readouterr().out.split())


def test_the_command_of_the_baseline_is_held_to_it_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _baseline(tmp_path / "base.json", 1.0)
    programs = SIMULATED._replace(gate_run=lambda *_: GateRun(steps_s=(0.1,) * 50))
    assert run(["check", "--baseline", "base.json", "python", "x.py"], programs=programs) == 0
    assert "another command" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("torch_version", "samples", "says"),
    [
        ("2.13.0", 64.0, ""),
        ("2.13.0", 66.0, ""),
        (None, None, ""),
        ("2.14.0", 64.0, "the baseline was measured with torch 2.13.0, this with torch 2.14.0"),
        ("2.13.0", 128.0, "the models of a step were given 64 samples and are given 128 now"),
    ],
)
def test_a_gate_says_what_differs_beside_the_times(
    torch_version: str | None,
    samples: float | None,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = iter([GateRun(steps_s=(0.1,) * 50, torch_version="2.13.0", step_samples=64.0)] * 3)
    later = GateRun(steps_s=(0.1,) * 50, torch_version=torch_version, step_samples=samples)
    programs = SIMULATED._replace(gate_run=lambda *_: next(runs, later))
    assert run(["check", "--baseline", "base.json", "--update", "python", "x.py"], programs=programs) == 0
    assert run(["check", "--baseline", "base.json", "python", "x.py"], programs=programs) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert says in told
    assert ("torch 2.1" in told or "samples" in told) == bool(says)


def test_a_run_of_a_gate_knows_its_torch_and_its_batches() -> None:
    seen = content(60, tuned=False).observation
    assert seen is not None
    (series,) = seen.series
    work = {"samples": np.full(series.num, 64, dtype="<f4").tobytes()}
    seen = msgspec.structs.replace(seen, series=(msgspec.structs.replace(series, work=work),))
    found = gate_run(seen)
    assert (found.step_samples, found.torch_version) == (64.0, seen.program.torch_version)
    unknown = msgspec.structs.replace(seen, series=(msgspec.structs.replace(series, work={}),))
    assert gate_run(unknown).step_samples is None


@pytest.mark.parametrize(("num", "code"), [(1, 5), (2, 1)])
def test_few_steps_fail_no_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num: int, code: int) -> None:
    monkeypatch.chdir(tmp_path)
    _baseline(tmp_path / "base.json", 1.0)
    programs = SIMULATED._replace(gate_run=lambda *_: GateRun(steps_s=(1.0, 1.001)[:num]))
    assert run(["check", "--baseline", "base.json", "python", "x.py"], programs=programs) == code


def test_a_baseline_of_another_command_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "base.json"
    _baseline(file, 1.0)
    known = msgspec.json.decode(file.read_bytes(), type=GateBaseline)
    elsewhere = {"elsewhere": next(iter(known.classes.values()))}
    other = GateBaseline(command=known.command, classes={**known.classes, **elsewhere})
    programs = SIMULATED._replace(gate_run=lambda *_: GateRun(steps_s=(0.1,) * 50))
    for command, classes in ((["python", "x.py"], 2), (["python", "y.py"], 1)):
        file.write_bytes(msgspec.json.encode(other))
        assert run(["check", "--baseline", "base.json", "--update", *command], programs=programs) == 0
        assert len(msgspec.json.decode(file.read_bytes(), type=GateBaseline).classes) == classes


@pytest.mark.parametrize("words", [("--margin", "nan"), ("--margin", "inf")])
def test_a_margin_is_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    _baseline(tmp_path / "base.json", 1.0)
    assert run(["check", "--baseline", "base.json", *words, "python", "x.py"]) == 2


def test_a_baseline_of_a_later_version_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _baseline(tmp_path / "base.json", 1.0)
    known = json.loads((tmp_path / "base.json").read_text())
    (tmp_path / "base.json").write_text(json.dumps({**known, "schema": 99}))
    assert run(["check", "--baseline", "base.json", "python", "x.py"]) == 2
    assert "schema 99" in capsys.readouterr().err


def test_a_run_that_failed_is_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "x.py"
    script.touch()
    monkeypatch.setattr(of_program, "observe", lambda *_: msgspec.structs.replace(FINE, exit_code=1))
    with pytest.raises(HotloopError, match="failed with exit code 1") as raised:
        of_program.program("run 1", (str(script),), tmp_path, StopRule(), lambda _: None)
    assert raised.value.code is ExitCode.PROGRAM_FAILED


def test_a_class_of_machines_without_a_baseline_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--baseline", "base.json", "python", "x.py"]) == 2
    assert "--update" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_command_is_compared_with_itself_at_another_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _program(tmp_path / "train.py", turns=200)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "slow"],
    ):
        subprocess.run(["git", *words], check=True)
    _program(tmp_path / "train.py", turns=20)
    assert run(["compare", "--baseline", "HEAD", "--budget", "40s", "--json", "c.json", "train.py"]) == 0
    found = json.loads((tmp_path / "c.json").read_text())
    # A busy machine leaves no time for the third pair of a verdict.
    assert found["verdict"] in {"faster", "inconclusive"}
    assert found["ratio"]["ratio"] > 1, found["reason"]
    assert any("train.py" in line for line in found["code"])
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_gate_on_a_real_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _program(tmp_path / "train.py", turns=20)
    words = ["check", "--baseline", "base.json", "--runs", "2", "--seconds", "3s", "--margin", "50"]
    assert run([*words, "--update", "train.py"]) == 0
    assert run([*words, "train.py"]) in {0, 5}, "beside others nothing can be said"


def test_a_program_is_compared_with_itself_under_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    plan = write_plan(tmp_path, None, WORKERS)
    seen = content(60, tuned=False).observation
    assert seen is not None
    compared: list[Program] = []

    def observed(name: str, words: tuple[str, ...], *_: object) -> Program:
        return Program(name=name, words=words, argv=words, folder=tmp_path, observation=seen)

    def duet(*both: Program, **_: object) -> Comparison:
        compared.extend(both)
        return compare_observations(seen, seen, ("a", "b"))

    words = ["compare", "a.py", f"hotloop run --force --plan {plan} a.py"]
    assert run(words, programs=SIMULATED._replace(observe=observed, duet=duet)) == 0
    assert [one.words for one in compared] == [("a.py",), ("a.py",)]
    assert [[step.name for step in one.plan] for one in compared] == [[], [WORKERS.name]]
