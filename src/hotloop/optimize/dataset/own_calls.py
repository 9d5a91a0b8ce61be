"""The calls of one piece of code, and of nothing else, by the interpreter's profile hook."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def own_calls(watch: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Tell `watch` of each call of this thread (see `sys.setprofile`), and put back whatever was set.

    Garbage is not collected meanwhile: destructors and callbacks of a collection (hypothesis times it) are no part of
    what runs.
    """
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
