"""The call of a model that is under way, by its frames: whether it evaluates, and the batch that it was given."""

from __future__ import annotations

from types import FrameType
from typing import Any

EVALUATION = "evaluation"
"""The phase of a forward in evaluation mode that keeps a graph."""


def evaluates(frame: FrameType | None) -> bool:
    """Whether the outermost module whose call a frame is under is in evaluation mode."""
    call = _outermost_call(frame)
    return call is not None and not getattr(call.f_locals.get("self"), "training", True)


def batch_under_way(frame: FrameType | None) -> dict[str, Any] | None:
    """Return samples, tokens and shape of the batch that the outermost module was given; None: none is known."""
    call = _outermost_call(frame)
    given = (
        (*call.f_locals.get("args", ()), *call.f_locals.get("kwargs", {}).values())
        if call is not None
        else ()
    )
    first = next((each for each in given if hasattr(each, "is_floating_point") and each.dim()), None)
    if first is None:
        return None
    whole = first.dim() == 2 and not first.is_floating_point()
    return {
        "samples": int(first.shape[0]),
        "tokens": int(first.numel()) if whole else 0,
        "shape": list(first.shape),
    }


def _outermost_call(frame: FrameType | None) -> FrameType | None:
    from torch import nn

    call, found = nn.Module._call_impl.__code__, None
    while frame is not None:
        found = frame if frame.f_code is call else found
        frame = frame.f_back
    return found
