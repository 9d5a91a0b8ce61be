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
