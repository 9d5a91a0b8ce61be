"""Which code runs: the commit of the user's repository."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from hotloop.model.git import DIFF, run_git
from hotloop.model.origin import CodeState

PATIENCE_S = 5.0
"""A repository on a slow network file system must not hold up a measurement."""
MAX_FILES = 200


def code_state(folder: Path) -> CodeState | None:
    """Return the state of the repository that a folder is in; None: it is in none, or Git is not installed."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    branch = _git(folder, "symbolic-ref", "--short", "-q", "HEAD")
    changed = (_git(folder, *DIFF, "--name-only", "-z", "HEAD") or "").split("\0")
    diff = _git(folder, *DIFF, "HEAD")
    return CodeState(
        commit=commit.strip(),
        branch=branch.strip() if branch else None,
        changed=tuple(name for name in changed if name)[:MAX_FILES],
        diff_sha256=hashlib.sha256(diff.encode()).hexdigest() if diff else None,
    )


def changes_between(folder: Path, before: str, after: str) -> tuple[str, ...] | None:
    """Return lines of `git log` and `git diff --stat` between two commits; None: they are not known here."""
    log = _git(folder, "log", "--oneline", "--no-decorate", "-n", "20", f"{before}..{after}", "--")
    stat = _git(folder, *DIFF, "--stat=100", f"{before}..{after}", "--")
    return None if log is None or stat is None else tuple((log + stat).splitlines())


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = run_git(folder, words, PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
