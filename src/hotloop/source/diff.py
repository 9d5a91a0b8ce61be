"""The difference of two files as a patch that `git apply` and `patch -p1` take."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

CONTEXT = 3
"""Lines around a change: what git shows."""


def unified(path: str, before: bytes, after: bytes) -> bytes:
    """Return the difference; empty where there is none.

    Line ends and encoding are those of the files: lines are compared, and printed, as bytes.
    """
    if before == after:
        return b""
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(before),
        _lines(after),
        _named("a/", path),
        _named("b/", path),
        n=CONTEXT,
        lineterm=b"\n",
    )
    return b"".join(_marked(lines))


def _named(side: str, path: str) -> bytes:
    """A name as Git writes it: what would end the line, or be no text, stands in quotes and is written out."""
    name = os.fsencode(f"{side}{path}")
    if path.isprintable() and '"' not in path and "\\" not in path:
        return name
    quoted = (bytes((one,)) if 32 <= one < 127 and one not in b'"\\' else b"\\%03o" % one for one in name)
    return b'"' + b"".join(quoted) + b'"'


def _lines(content: bytes) -> list[bytes]:
    """Lines as git sees them: a lone carriage return ends none."""
    return [line + b"\n" for line in content.split(b"\n")[:-1]] + (
        [content.split(b"\n")[-1]] if not content.endswith(b"\n") and content else []
    )


def _marked(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
