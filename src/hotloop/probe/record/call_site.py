"""The line of the user's program that a call came from."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType

_LIBRARIES = tuple({sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "purelib", "platlib")})
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep


def user_line(depth: int = 1) -> tuple[str | None, int | None]:
    """Return path and line of the innermost frame that is neither a library's nor ours, or (None, None)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and depth > 1:
        frame, depth = frame.f_back, depth - 1
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_LIBRARIES, _OWN, "<frozen")):
            return path, frame.f_lineno
        frame = frame.f_back
    return None, None
