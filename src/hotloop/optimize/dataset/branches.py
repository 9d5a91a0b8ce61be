"""Whether the program's own code decides something while a sample is read: a decision for a row is none for a batch."""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def decides(run: Callable[[], Any]) -> str | None:
    """Run something; return the first function of the user's that it called and that has an `if` in it, None: none has.

    Uses the interpreter's profile hook for as long as it runs, and puts back whatever was set. Garbage is not collected
    meanwhile: destructors and callbacks of a collection are no part of what runs.
    """
    from hotloop.probe.instruments.frames import Frames, Owner

    frames = Frames()
    called: dict[CodeType, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frames.owner(frame) is Owner.USER:
            called[frame.f_code] = None

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return next((code.co_name for code in called if code is not run.__code__ and has_branch(code)), None)


def has_branch(code: CodeType) -> bool:
    """Whether code goes one way or the other, depending on a value; a loop over a list of transforms does not count."""
    return any("JUMP" in each.opname and "IF_" in each.opname for each in dis.get_instructions(code))
