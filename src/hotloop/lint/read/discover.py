"""Which files are meant by the paths on the command line."""

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hotloop.lint.read.notebook import SUFFIX
from hotloop.model.errors import HotloopError

# Folders that hold no source of the project's own.
_SKIPPED = frozenset(
    {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "wandb", "mlruns"}
)


def python_files(paths: Sequence[str], exclude: Sequence[str]) -> list[str]:
    """The Python files that the paths name or hold, in order and each once.

    Raises:
        HotloopError: a path does not exist.
    """
    found: dict[str, None] = {}
    for path in paths:
        if not os.path.exists(path):
            raise HotloopError(
                f"{path} does not exist, so nothing was read.", "Name files or folders that exist."
            )
        for file in _below(path):
            if not is_excluded(file, exclude):
                found[file] = None
    return list(found)


def _below(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if name.endswith((".py", SUFFIX)):
                yield os.path.normpath(os.path.join(folder, name))


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern names the file, a folder above it, or the whole path."""
    parts = Path(path).parts
    return any(
        fnmatch.fnmatch(path, pattern)
        or fnmatch.fnmatch(path, f"*/{pattern}")
        or fnmatch.fnmatch(path, f"{pattern.rstrip('/')}/*")
        or any(fnmatch.fnmatch(part, pattern) for part in parts)
        for pattern in patterns
    )
