"""What is said before a program is started, and after it has ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import pytest

from hotloop.cli import preflight
from hotloop.cli.exit_message import how_it_ended
from hotloop.cli.observe import command as observe_command
from hotloop.launch.isolation.decide import Isolation
from hotloop.machine.environment.snapshot import MachineSnapshot
from hotloop.model.machine import Cores
from hotloop.observe.coverage import with_gaps
from hotloop.report.terminal.screen import Screen

from ..report.test_observation_screen import observation

QUIET = MachineSnapshot(
    cores=Cores(num_logical=2, num_usable=2),
    wall_s=0.6,
    folder=".",
    disk_bytes=1 << 40,
    disk_free_bytes=1 << 39,
    swap_used_bytes=0,
    swap_bytes_per_s=0.0,
    clock_drift_ratio=0.0,
    foreign_ratio=0.01,
)
Says = Callable[..., str]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Says:
    """What is said before a command is run, where the machine is as told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "resolve", list)

    def said(*words: str, machine: MachineSnapshot = QUIET) -> str:
        monkeypatch.setattr(preflight, "look", lambda *_, **__: machine)
        with click.Context(observe_command):
            preflight.before_run(Screen(), words)
        return " ".join(capsys.readouterr().err.split())

    return said


def test_a_quiet_machine_is_not_talked_about(says: Says) -> None:
    assert says("python", "train.py") == ""


def test_a_busy_machine_is_said_before_the_time_is_spent(says: Says) -> None:
    busy = msgspec.structs.replace(QUIET, foreign_ratio=0.4, busiest=(("ffmpeg", 4711, 0.4),))
    assert says("python", "train.py", machine=busy).startswith(
        "hotloop: other processes use 40% of the CPU now: ffmpeg (pid 4711)."
    )


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (("--no-deep",), "--no-deep"),
        (("--seconds=3",), "--seconds 3"),
        (("--seconds", "3"), "--seconds 3"),
        (("--seconds",), "--seconds ..."),
    ],
)
def test_an_option_of_ours_behind_the_command_is_pointed_out(
    words: tuple[str, ...], typed: str, says: Says, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import argparse\n")
    said = says("python", "train.py", *words)
    assert f"{typed.split(maxsplit=1)[0]} stands behind your command, so your program gets it" in said
    assert f"hotloop observe {typed} python ..." in said


@pytest.mark.parametrize("source", ["parser.add_argument('--seconds')", "def main(seconds: int): ..."])
def test_an_option_that_the_program_knows_is_its_own(source: str, says: Says, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(source)
    assert says("python", "train.py", "--seconds", "3") == ""


def test_the_programs_output_stands_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    preflight.say_whose_output(screen, ["python", "train.py", "--name", "with blanks"])
    assert "output of python train.py --name 'with blanks' -----" in capsys.readouterr().err
    preflight.say_whose_output(screen, ["python", "train.py", "x" * 200])
    assert len(capsys.readouterr().err.rstrip("\n").splitlines()[-1]) <= 80
    screen.done()
    assert set(capsys.readouterr().err.strip()) == {"-"}, "a rule ends it"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "hotloop ended your program after 214 steps, at a step boundary"),
        (0, "your program ran to completion after 214 steps"),
        (3, "your program FAILED after 214 steps: exit code 3"),
    ],
)
def test_who_ended_the_program(code: int | None, said: str) -> None:
    assert how_it_ended(observation(exit_code=code)).startswith(said)


@pytest.mark.parametrize("code", [None, 1, 130])
def test_the_user_ended_it(code: int | None) -> None:
    """Whatever the program made of Ctrl-C: it did not fail, and what is shown is not all that was wanted."""
    seen = with_gaps(observation(exit_code=code), Isolation(), lost=False, interrupted=True)
    assert how_it_ended(seen).startswith("you interrupted your program after 214 steps")
