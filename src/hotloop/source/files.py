"""Read the user's files, and write them so that at every moment the old or the new one is complete on disk."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

from hotloop.model.git import run_git

BACKUP = ".orig"
"""What `patch` and `git` call the file as it was before."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file's content; links are followed, the mode stays."""
    target = path.resolve()
    mode = target.stat().st_mode
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def back_up(path: Path) -> Path:
    """Keep a file as it is beside itself, under a name that is not taken; return that name."""
    number = 0
    while True:
        copy = path.with_name(f"{path.name}{BACKUP}{number or ''}")
        try:
            with copy.open("xb") as file:  # a link of that name is taken, wherever it leads
                file.write(path.read_bytes())
        except FileExistsError:
            number += 1
        else:
            return copy


def is_committed(path: Path) -> bool | None:
    """Return whether the last commit holds a file exactly as it is; None: it is in none, or there is no git."""
    try:
        known = _git(path, "cat-file", "-e", f"HEAD:./{path.resolve().name}")
        changed = _git(path, "status", "--porcelain", "--ignore-submodules=all", "--", path.resolve().name)
    except OSError:
        return None
    if known.returncode != 0 or changed.returncode != 0:
        return None
    return not changed.stdout


def _git(path: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return run_git(path.resolve().parent, words)
