"""How Git is called: a repository's own settings, attributes and hooks start no program of its author's.

A repository may be somebody else's (a clone, a team folder), and Git runs what its settings name: hooks, file system
monitors, filters, converters, a `gpg`, the other end of a partial clone. Settings of the user and of the system are
trusted: a filter that only they name (Git LFS) works.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_NOTHING_RUNS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "diff.external": "",
}
_ENVIRONMENT = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
"""Nothing is fetched: the other end of a local path is a command, too."""
DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
"""In a submodule Git would look with the submodule's own settings."""
_FILTER = re.compile(r"^filter\.(.*)\.(?:clean|smudge|process|required)$", re.IGNORECASE | re.DOTALL)


def run_git(
    folder: Path, words: Sequence[str], timeout_s: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run Git in a folder, without the filters that its repository names.

    Raises:
        OSError: Git cannot be run.
        TimeoutExpired: it took too long.
    """
    settings = {**_NOTHING_RUNS, **_without_filters(folder, timeout_s)}
    return _run(folder, settings, words, timeout_s)


def _without_filters(folder: Path, timeout_s: float | None) -> dict[str, str]:
    """Return settings that take the place of every filter in the repository's own files."""
    found: dict[str, str] = {}
    for scope in ("--local", "--worktree"):
        listed = _run(
            folder, _NOTHING_RUNS, ("config", scope, "--includes", "--name-only", "-z", "--list"), timeout_s
        )
        for name in listed.stdout.decode(errors="surrogateescape").split("\0"):
            match = _FILTER.match(name)
            if match:
                filtered = f"filter.{match[1]}"
                found |= {f"{filtered}.{key}": "" for key in ("clean", "smudge", "process")}
                found[f"{filtered}.required"] = "false"
    return found


def _run(
    folder: Path, settings: dict[str, str], words: Sequence[str], timeout_s: float | None
) -> subprocess.CompletedProcess[bytes]:
    # Variables, not `-c`: the name of a filter may hold an equals sign.
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        numbered |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return subprocess.run(
        ["git", "-C", str(folder), *words],
        env={**os.environ, **_ENVIRONMENT, **numbered},
        capture_output=True,
        check=False,
        timeout=timeout_s,
    )
