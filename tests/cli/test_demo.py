"""`hotloop demo` says what it types, and what to type for one's own program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from hotloop.cli import demo
from hotloop.cli.app import run


def test_the_demo_ends_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    @click.command("tune")
    def tune(**options: Any) -> int:
        asked.update(options)
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "tune_command", tune.callback)
    (tmp_path / "hotloop-demo" / "data").mkdir(parents=True)
    assert run(["demo", "--budget", "30s"]) == 0
    said = capsys.readouterr()
    script = "hotloop-demo/train.py"
    assert f"$ hotloop tune --budget 30s --plan hotloop-demo/hotloop.toml {script}" in said.err
    assert said.out.endswith(f"That was {script}; your own: hotloop tune python train.py\n")
    assert asked["command"] == (script,)
    assert (tmp_path / script).exists()


def test_where_nothing_can_be_written_the_example_is_tuned_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed, other = tmp_path / "closed", tmp_path / "other"
    for folder in (closed, other):
        folder.mkdir()
    stored_in: list[Path] = []

    @click.command("tune")
    def tune(**_: Any) -> int:
        stored_in.append(Path.cwd())
        return 0

    monkeypatch.chdir(closed)
    monkeypatch.setattr(demo, "tune_command", tune.callback)
    monkeypatch.setattr(demo.os, "access", lambda place, _: Path(place).absolute() != closed)
    monkeypatch.setattr(demo.tempfile, "gettempdir", lambda: str(other))
    (other / "hotloop-demo" / "data").mkdir(parents=True)
    assert run(["demo"]) == 0
    assert stored_in == [other]
    assert f"cd {other}" in capsys.readouterr().err
