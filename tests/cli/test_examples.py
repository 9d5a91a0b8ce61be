"""A command that was typed wrongly is answered with one that can be copied."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hotloop.cli.app import run
from hotloop.model.errors import ExitCode


@pytest.mark.parametrize(
    ("typed", "wrong", "example"),
    [
        (
            "check python train.py",
            "Missing option '--baseline'",
            "hotloop check --baseline baseline.json --update python train.py",
        ),
        (
            "check --baseline",
            "Option '--baseline' requires an argument",
            "hotloop check --baseline baseline.json python train.py",
        ),
        ("data bench", "Missing argument 'SRC'", "hotloop data bench images/"),
        ("data pack images", "Missing argument 'DEST'", "hotloop data pack images/ shards/"),
        ("data check", "Missing argument '[SRC] DEST'", "hotloop data check shards/"),
        ("tune", "Missing argument 'COMMAND...'", "hotloop tune --budget 5m python train.py"),
        ("run", "Missing argument 'COMMAND...'", "hotloop run --plan hotloop.toml python train.py"),
        ("observe", "COMMAND is missing", "hotloop observe --steps 200 python train.py"),
        ("diagnose --session", "requires an argument", "hotloop diagnose python train.py"),
        ("lint", "Missing argument 'PATHS...'", "hotloop lint --diff train.py"),
        ("compare", "Missing argument", "hotloop compare 'python train.py' 'python train.py --fused'"),
        ("trace analyze", "Missing argument", "hotloop trace analyze trace.json.gz"),
        ("report --html", "Option '--html' requires an argument", "hotloop report --html report.html"),
    ],
)
def test_what_is_missing_is_said_with_an_example(
    typed: str, wrong: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(typed)) == ExitCode.USAGE
    usage, error, *examples = capsys.readouterr().err.splitlines()
    assert usage.startswith(f"Usage: hotloop {typed.split(maxsplit=1)[0]}")
    assert wrong in error
    assert any(line.endswith(example) for line in examples)


def test_a_baseline_that_is_not_there_is_made_by_a_command_that_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--baseline", "b.json", "python", "train.py"]) == ExitCode.USAGE
    assert "hotloop check --baseline b.json --update python train.py" in capsys.readouterr().err
