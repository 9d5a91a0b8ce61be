"""Whether the program's own code decides something while a sample is read: a decision for a row is none for a batch."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from hotloop.optimize.dataset.own_calls import own_calls


def decides(run: Callable[[], Any]) -> str | None:
    """Run something; return the first function of the user's that it called and that has an `if`, None: none has."""
    from hotloop.probe.instruments.frames import Frames, Owner

    frames = Frames()
    called: dict[CodeType, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frames.owner(frame) is Owner.USER:
            called[frame.f_code] = None

    with own_calls(watch):
        run()
    return next((code.co_name for code in called if code is not run.__code__ and has_branch(code)), None)


def has_branch(code: CodeType) -> bool:
    """Whether code goes one way or the other, depending on a value; a loop over a list of transforms does not count."""
    return any("JUMP" in each.opname and "IF_" in each.opname for each in dis.get_instructions(code))
