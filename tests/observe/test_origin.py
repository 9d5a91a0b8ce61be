"""A session says what it is of: the packages are those of the program, not ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hotloop.observe.run.origin import origin


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command with a package that our own Python does not find."""
    monkeypatch.chdir(tmp_path)
    info = tmp_path / "site" / "quick_thing-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quick-thing\nVersion: 1.5\n")
    (tmp_path / "train.py").write_text("")
    places = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    return [f"PYTHONPATH={places}", sys.executable, "train.py"]


def test_packages_are_those_of_the_command(command: list[str]) -> None:
    found = origin("observe", command).packages
    assert found["quick-thing"] == "1.5"
    assert "msgspec" in found


def test_a_process_that_others_started_is_not_asked(command: list[str]) -> None:
    assert origin("observe", command, runs=False).packages == {}


@pytest.mark.parametrize("words", [["no-such-program"], ["sh", "-c", "true"]])
def test_without_a_known_python_no_packages_are_known(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert origin("observe", words).packages == {}
