"""The list of commands, and what is said where one is misspelt."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

import click
import pytest

from hotloop.__main__ import main
from hotloop.cli.app import _NAMES, hotloop, run
from hotloop.model.errors import ExitCode


def test_every_command_is_listed_with_a_line_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert {line.split()[0] for line in lines if line.startswith("  ") and line.split()} >= set(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_every_command_has_a_page_of_its_own(name: str) -> None:
    command = hotloop.get_command(click.Context(hotloop), name)
    assert command is not None
    assert command.help


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tnue", "train.py"], "did you mean tune?"),
        (["train.py", "--lr", "3"], "hotloop observe train.py --lr 3"),
        (["python", "train.py"], "hotloop observe python train.py"),
        (["sh", "run me.sh"], "hotloop observe sh 'run me.sh'"),
        (["zzz"], "hotloop --help lists all"),
    ],
)
def test_what_was_meant(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert said in capsys.readouterr().err


def test_ctrl_c_while_it_is_loaded_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupts:
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "hotloop.cli.app", cast("ModuleType", Interrupts()))
    assert main() == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "hotloop: interrupted\n"
