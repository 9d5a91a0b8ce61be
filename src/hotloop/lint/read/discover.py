"""Which files are meant by the paths on the command line."""

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hotloop.lint.read.notebook import SUFFIX
from hotloop.model.errors import HotloopError

# Folders that hold no source of the project's own.
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist", "wandb", "mlruns"})
_MARKS = ("pyvenv.cfg", "conda-meta")
"""What makes a folder an environment of Python; by its name, `env` may be a program's simulator."""


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
        folders[:] = sorted(name for name in folders if _holds_source(folder, name))
        for name in sorted(files):
            if name.endswith((".py", SUFFIX)):
                yield os.path.normpath(os.path.join(folder, name))


def _holds_source(folder: str, name: str) -> bool:
    if name in _SKIPPED or name.startswith("."):
        return False
    return not any(os.path.exists(os.path.join(folder, name, mark)) for mark in _MARKS)


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
