"""A line of source, as much of its path as has room."""

from __future__ import annotations

from pathlib import Path

WIDTH = 34
"""Columns for a path and its line."""


def source_line(path: str, line: int, *, width: int = WIDTH) -> str:
    """Return `folder/file.py:12`: relative to the current folder, else with as many of its folders as fit.

    The name of the file and the number of the line are never cut.
    """
    own = Path(path)
    if own.is_relative_to(Path.cwd()):
        own = own.relative_to(Path.cwd())
    text = f"{own.name}:{line}"
    for folder in reversed(own.parts[:-1]):
        if len(folder) + 1 + len(text) > width or folder == own.anchor:
            break
        text = f"{folder}/{text}"
    return text
