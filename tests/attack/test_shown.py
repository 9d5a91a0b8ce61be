"""Thirty hostile strings in every place where text of others is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.store.session import Session, session_folder
from tests.attack.counts import count
from tests.model.hostile import STRINGS, raw_in

pytestmark = [pytest.mark.attack, pytest.mark.slow, pytest.mark.timeout(900)]


def _names() -> list[str]:
    """The strings that a file's name can hold."""
    return [text for text in STRINGS if "\0" not in text and "/" not in text and "\ud800" not in text]


_ALL_IN_ONE = """
import io, json, sys
from hotloop.cli.app import run

for command in json.loads(sys.stdin.read()):
    kept = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        run(command)
    except BaseException as error:
        shown.write(f"Traceback {type(error).__name__}")
    shown.flush()
    sys.stdout, sys.stderr = kept
    print(json.dumps(shown.buffer.getvalue().decode()), flush=True)
"""


def _shown(folder: Path, commands: list[tuple[str, ...]]) -> list[str]:
    """What each command says, all in one process: two hundred starts take minutes."""
    done = subprocess.run(
        [sys.executable, "-c", _ALL_IN_ONE],
        cwd=folder,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _commands(folder: Path) -> list[tuple[str, ...]]:
    for number, text in enumerate(_names()):
        (folder / f"{number}{text}.py").write_text("import torch\ntorch.autograd.set_detect_anomaly(True)\n")
    events = [
        {
            "ph": "X",
            "cat": cat,
            "name": text,
            "pid": pid,
            "tid": text,
            "ts": 10.0 * at,
            "dur": 5.0,
            "args": args,
        }
        for at, text in enumerate(STRINGS)
        for cat, pid, args in (
            ("cpu_op", 1, {"External id": at, "Input Dims": [text]}),
            ("kernel", 0, {"External id": at, "correlation": at, "stream": text, "device": 0}),
            ("user_annotation", 1, {}),
        )
    ]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))
    (folder / "other.json").write_text(json.dumps({"traceEvents": events[:30]}))
    plain = [
        ("trace", "analyze", "trace.json", "--top", "100"),
        ("trace", "diff", "trace.json", "other.json", "--top", "100"),
    ]
    by_string = [
        command
        for text in _names()
        for command in (
            ("explain", text),
            (f"x{text}",),
            ("tune", "--only", text, "a.py"),
            ("observe", f"{text}.py"),
            ("run", "--plan", text, "a.py"),
            ("trace", "analyze", f"no{text}"),
        )
    ]
    by_string += [("report", text) for text in _names()]
    for text in _names():
        Session(session_folder(folder) / f"{text}.sqlite").close()
    return [
        *(("lint", "--format", form, ".") for form in ("text", "json", "sarif", "github")),
        ("lint", "--diff", "."),
        ("sessions",),
        ("report",),
        ("diagnose",),
        *plain,
        *by_string,
    ]


def test_nothing_raw_is_shown_in_any_place(tmp_path: Path) -> None:
    os.environ.pop("FORCE_COLOR", None)
    commands = _commands(tmp_path)
    raw: dict[tuple[str, ...], set[str]] = {}
    for command, shown in zip(commands, _shown(tmp_path, commands), strict=True):
        found = raw_in(shown) | ({"Traceback"} if "Traceback" in shown else set())
        found |= {"::" for line in shown.splitlines() if line.startswith("::") and command[:1] != ("lint",)}
        found |= {"::error" for line in shown.splitlines() if line.startswith(("::error", "::add-mask"))}
        if found:
            raw[command] = found
    count("hostile strings, places and strings", len(commands), len(commands) - len(raw))
    assert not raw
