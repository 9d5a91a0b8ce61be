"""Whose code a frame runs, and which line of the user's a call came from."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import torch

from hotloop.probe.record.call_site import is_library


class Owner(Enum):
    """Whose code it is."""

    USER = "user"
    LIBRARY = "library"
    """The standard library or an installed package."""
    TORCH = "torch"
    OURS = "hotloop"


class Line(NamedTuple):
    """A line of Python."""

    path: str
    line: int
    function: str


class Caller(NamedTuple):
    """Where a call came from."""

    at: Line
    """The innermost line of the user's; where all is installed packages, the innermost outside torch."""
    direct: Line
    """The line that calls; the same, or a library's."""
    owner: Owner
    """Of the line that calls."""
    loading: bool
    """The call is made while a DataLoader fetches."""


_TORCH = os.path.dirname(torch.__file__) + os.sep
_OURS = str(Path(__file__).parents[2]) + os.sep
_LOADING = os.path.join(_TORCH, "utils", "data", "_utils", "fetch.py")
_GENERATED = "torchinductor_"
"""In the name of the folder for code that torch.compile writes."""


class Frames:
    """Tells frames apart; remembers what it knows of each code object."""

    def __init__(self) -> None:
        self._owners: dict[CodeType, Owner] = {}

    def owner(self, frame: FrameType) -> Owner:
        """Return whose code a frame runs."""
        code = frame.f_code
        known = self._owners.get(code)
        if known is None:
            known = self._owners[code] = self._owner_of(frame)
        return known

    def caller(self, frame: FrameType) -> Caller | None:
        """Return where a call came from; None: from us, or from torch alone."""
        owner = self.owner(frame)
        if owner is Owner.OURS:
            return None
        user = outside = None
        loading = False
        one: FrameType | None = frame
        while one is not None:
            kind = self.owner(one)
            if user is None and kind is Owner.USER:
                user = one
            elif outside is None and kind is Owner.LIBRARY and not self._is_standard(one):
                outside = one
            loading = loading or one.f_code.co_filename == _LOADING
            one = one.f_back
        at = user or outside
        return None if at is None else Caller(line_of(at), line_of(frame), owner, loading)

    def _is_standard(self, frame: FrameType) -> bool:
        path = frame.f_code.co_filename
        return "site-packages" not in path and "dist-packages" not in path

    def owner_of_line(self, line: Line) -> Owner:
        """Return whose code a line is, by its file alone."""
        if line.path.startswith("<"):
            typed = line.path in {"<string>", "<stdin>"} and sys.argv[:1] in (["-c"], ["-"], [""])
            return Owner.USER if typed else Owner.LIBRARY
        return self._owner_of_file(os.path.abspath(line.path))

    def is_users(self, path: str) -> bool:
        """Whether a file is the user's."""
        return not path.startswith("<frozen ") and self._owner_of_file(path) is Owner.USER

    def _owner_of(self, frame: FrameType) -> Owner:
        path = frame.f_code.co_filename
        if path.startswith("<"):
            # What stands on the command line is the user's; the rest is generated or frozen.
            return Owner.USER if frame.f_globals.get("__name__") == "__main__" else Owner.LIBRARY
        return self._owner_of_file(os.path.abspath(path))

    def _owner_of_file(self, path: str) -> Owner:
        if path.startswith(_OURS):
            return Owner.OURS
        if path.startswith(_TORCH) or _GENERATED in path:
            return Owner.TORCH
        return Owner.LIBRARY if is_library(path) else Owner.USER


def line_of(frame: FrameType) -> Line:
    """Return the line that a frame is at."""
    code = frame.f_code
    return Line(code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name)
