"""Every command that ends well says what to type next."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from hotloop.cli.app import run
from hotloop.cli.programs import Programs
from hotloop.model.gate import GateRun
from hotloop.store.session import new_session

from ..report.rich_session import content
from ..trace.example import example_trace

PROGRAMS = Programs(
    look=lambda *_: (), gate_run=lambda *_: GateRun(steps_s=(0.1, 0.101, 0.099, 0.1, 0.1, 0.102) * 10)
)
"""A program that is as fast as ever."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions, a trace, some files, their pack, and a program that is as fast as ever."""
    monkeypatch.chdir(tmp_path)
    said = content(60, tuned=False)
    for name in ("s0", "s1"):
        with contextlib.closing(new_session(tmp_path, name)) as session:
            session.put("observation", said.observation)
            session.put("origin", said.origin)
    (tmp_path / "small.json").write_text(json.dumps(example_trace()))
    files = tmp_path / "files"
    files.mkdir()
    for number in range(8):
        (files / f"{number}.bin").write_bytes(bytes(1000))
    assert run(["data", "pack", "files", "packed"]) == 0
    assert run(["check", "--baseline", "base.json", "--update", "python", "x.py"], programs=PROGRAMS) == 0
    return tmp_path


@pytest.mark.parametrize(
    ("words", "next_words"),
    [
        (["compare", "s0", "s1"], "hotloop diagnose python train.py"),
        (["report", "s0", "s1"], "hotloop diagnose python train.py"),
        (["report", "s0"], "hotloop report s0 --html"),
        (["sessions"], "hotloop report"),
        (["trace", "analyze", "small.json"], "hotloop trace diff small.json"),
        (["trace", "diff", "small.json", "small.json"], "hotloop trace analyze"),
        (["trace", "convert", "small.json", "out.json"], "hotloop trace analyze small.json"),
        (["data", "pack", "files", "again"], "hotloop data check"),
        (["data", "check", "packed"], "hotloop data bench"),
        (["data", "bench", "files", "--seconds", "0.1"], "hotloop data pack"),
        (
            ["check", "--baseline", "base.json", "--update", "python", "x.py"],
            "hotloop check --baseline base.json",
        ),
        (["check", "--baseline", "base.json", "python", "x.py"], "python x.py"),
        (
            [
                "check",
                "--baseline",
                "base.json",
                "--margin",
                "3",
                "--runs",
                "2",
                "--update",
                "python",
                "x.py",
                "--token=t",
            ],
            "hotloop check --baseline base.json --margin 3 --runs 2 python x.py --token=REDACTED",
        ),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, list) else "",
)
def test_what_to_type_next_is_said(
    words: list[str], next_words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(words, programs=PROGRAMS) == 0
    said = capsys.readouterr().out
    assert re.search(r"^next$", said, re.MULTILINE), said
    assert next_words in " ".join(said[said.rindex("\nnext\n") :].replace("\\\n", " ").split())
