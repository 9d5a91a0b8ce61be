"""Names of kernels in a column: without what all have in common, and cut so that they stay apart."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence

_NO_INTEREST = re.compile(r"\(anonymous namespace\)::|<unnamed>::|at::native::")
_NOT_A_FUNCTION = ("Memcpy", "Memset", "[")
HEAD = 12
"""Columns of the common beginning that are kept where names differ only behind it."""


def columns(names: Sequence[str], width: int) -> list[str]:
    """Return names that fit a column, each still different from those that it differs from."""
    plain = [_function(name) for name in names]
    alike: dict[str, set[str]] = defaultdict(set)
    for name in plain:
        alike[name[: width - 1]].add(name)
    return [_cut(name, sorted(alike[name[: width - 1]]), width) for name in plain]


def _cut(name: str, alike: Sequence[str], width: int) -> str:
    if len(name) <= width:
        return name
    if len(alike) == 1:
        return f"{name[: width - 1]}…"
    # A little of what is common stays before the difference, so that a number is read whole.
    begin = max(HEAD, len(os.path.commonprefix(alike)) - 6)  # noqa: RUF071 - characters are meant
    rest = name[begin:]
    room = width - HEAD - 1
    return f"{name[:HEAD]}…{rest if len(rest) <= room else f'{rest[: room - 1]}…'}"


def _function(name: str) -> str:
    """Return the function's own name and template arguments: without its return type and its parameters."""
    text = _NO_INTEREST.sub("", name)
    if text.startswith(_NOT_A_FUNCTION):
        return text
    depth, begin = 0, 0
    for at, char in enumerate(text):
        if char == "(" and depth == 0:
            return text[begin:at] if at > begin else text
        if char == " " and depth == 0:
            begin = at + 1
        depth += (char in "<([{") - (char in ">)]}" and depth > 0)
    return text[begin:] if begin < len(text) else text
