"""The line of the user's program that a call came from."""

from __future__ import annotations

import sys
import sysconfig
from types import FrameType

_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})
_OWN = __file__.rsplit("/", 2)[0]


def user_line(depth: int = 1) -> tuple[str | None, int | None]:
    """Return path and line of the innermost frame that is neither a library's nor ours, or (None, None)."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_LIBRARIES, _OWN, "<frozen")):
            return path, frame.f_lineno
        frame = frame.f_back
    return None, None
