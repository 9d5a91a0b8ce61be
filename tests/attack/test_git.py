"""A repository's settings name programs; hotloop's look at it runs none of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hotloop.machine.environment.code_state import changes_between, code_state
from hotloop.source.files import is_committed
from hotloop.tune.compare.baseline_tree import tree_at

NAMED = {
    "filter.x.clean": "{ran}",
    "filter.x.smudge": "{ran}",
    "filter.y=z.process": "{ran}",
    "filter.y=z.required": "true",
    "core.fsmonitor": "{ran}",
    "core.sshCommand": "{ran}",
    "diff.external": "{ran}",
    "diff.x.textconv": "{ran}",
    "gpg.program": "{ran}",
    "log.showSignature": "true",
}


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q")
    (folder / ".gitattributes").write_text("*.py filter=x diff=x\n*.txt filter=y=z\n")
    for name in ("train.py", "notes.txt"):
        (folder / name).write_text("before\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "first")
    ran = tmp_path / "run.sh"
    ran.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\ncat\n")
    ran.chmod(0o755)
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-checkout").symlink_to(ran)
    for name, value in NAMED.items():
        section, _, key = name.rpartition(".")
        head, _, sub = section.partition(".")
        title = f'[{head} "{sub}"]' if sub else f"[{head}]"
        with (folder / ".git" / "config").open("a") as file:
            file.write(f"{title}\n\t{key} = {value.format(ran=ran)}\n")
    for name in ("train.py", "notes.txt"):
        (folder / name).write_text("after\n")
        os.utime(folder / name, (1, 1))
    return folder


def test_no_program_that_a_repository_names_is_run(hostile: Path) -> None:
    state = code_state(hostile)
    assert state is not None
    assert set(state.changed) == {"train.py", "notes.txt"}
    assert is_committed(hostile / "train.py") is False
    changes_between(hostile, "HEAD", "HEAD")
    with tree_at("HEAD", hostile) as tree:
        assert (tree / "train.py").read_text() == "before\n"
    assert not (hostile.parent / "ran").exists()
