"""Whether a model in evaluation mode computes, by the frames that are under way."""

from __future__ import annotations

from types import FrameType

EVALUATION = "evaluation"
"""The phase of a forward in evaluation mode that keeps a graph."""


def evaluates(frame: FrameType | None) -> bool:
    """Whether the outermost module whose call a frame is under is in evaluation mode."""
    from torch import nn

    call = nn.Module._call_impl.__code__
    outermost = None
    while frame is not None:
        if frame.f_code is call:
            outermost = frame.f_locals.get("self")
        frame = frame.f_back
    return isinstance(outermost, nn.Module) and not outermost.training
