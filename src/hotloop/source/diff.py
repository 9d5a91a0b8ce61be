"""The difference of two files as a patch that `git apply` and `patch -p1` take."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

CONTEXT = 3
"""Lines around a change: what git shows."""


def unified(path: str, before: bytes, after: bytes) -> bytes:
    """Return the difference; empty where there is none.

    Line ends and encoding are those of the files: lines are compared, and printed, as bytes.
    """
    if before == after:
        return b""
    name = path.encode()
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(before),
        _lines(after),
        b"a/" + name,
        b"b/" + name,
        n=CONTEXT,
        lineterm=b"\n",
    )
    return b"".join(_marked(lines))


def _lines(content: bytes) -> list[bytes]:
    """Lines as git sees them: a lone carriage return ends none."""
    return [line + b"\n" for line in content.split(b"\n")[:-1]] + (
        [content.split(b"\n")[-1]] if not content.endswith(b"\n") and content else []
    )


def _marked(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
