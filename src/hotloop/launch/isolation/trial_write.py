"""Whether a prepared overlay takes writes: `python -I -S trial_write.py RESULT` inside it, with what to try on stdin.

`/bin/true` in a namespace proves nothing: in an overlay a file can be made only where all folders above it can be
copied up.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from typing import Any

NAME = ".hotloop-try-"


def main(result: str) -> int:
    """Try each folder and file, and write a JSON list of places and reasons for those that failed."""
    orders: dict[str, list[str]] = json.load(sys.stdin)
    failed: list[tuple[str, str]] = []
    for folder in orders["folders"]:
        _note(failed, folder, _write_in)
    for file in orders["files"]:
        _note(failed, file, _change)
    with open(result, "w") as out:
        json.dump(failed, out)
    return 0


def _note(failed: list[tuple[str, str]], place: str, way: Any) -> None:
    try:
        way(place)
    except OSError as error:
        failed.append((place, os.strerror(error.errno) if error.errno else str(error)))


def _write_in(folder: str) -> None:
    """Make a folder and a file in it, move and remove them, as programs do with their runs."""
    made = tempfile.mkdtemp(prefix=NAME, dir=folder)
    try:
        inside = os.path.join(made, "file")
        with open(inside, "w") as file:
            file.write("x")
        os.replace(inside, os.path.join(made, "moved"))
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(made)


def _change(path: str) -> None:
    """Open a file for writing, which copies it up."""
    with open(path, "ab"):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
