"""The program's lines that an operation was called from, each stack of them once."""

from __future__ import annotations

import os
from types import FrameType

import torch

from hotloop.probe.instruments.frames import Frames, Line, Owner, line_of

FORWARD, LOADING, OPTIMIZER = "forward", "loading", "optimizer"
"""What an operation is part of."""
MAX_FRAMES = 24
"""Innermost ones that are kept; a library's trainer has more below the program's own line."""
_TORCH = os.path.dirname(torch.__file__) + os.sep
_FETCH = os.path.join(_TORCH, "utils", "data", "_utils", "fetch.py")
_OPTIMIZERS = os.path.join(_TORCH, "optim") + os.sep
_PARAMETRIZED = (
    os.path.join(_TORCH, "nn", "utils", "parametrize.py"),
    os.path.join(_TORCH, "nn", "utils", "weight_norm.py"),
    os.path.join(_TORCH, "nn", "utils", "spectral_norm.py"),
)

Stack = tuple[tuple[Line, ...], str, bool]
"""Lines, the outermost first; what they are part of; whether a parametrized weight is made."""


class OperationStacks:
    """Numbers the stacks of lines that are the program's own, or an installed package's other than torch.

    Args:
        frames: tells them apart.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._numbers: dict[Stack, int] = {}
        self._parts: list[str] = []

    def number(self, frame: FrameType | None) -> int:
        """Return the number of the stack that a frame is the innermost of."""
        lines: list[Line] = []
        part, parametrized = FORWARD, False
        while frame is not None:
            owner = self._frames.owner(frame)
            if owner is Owner.TORCH:
                path = frame.f_code.co_filename
                if path == _FETCH:
                    part = LOADING
                elif path.startswith(_OPTIMIZERS):
                    part = OPTIMIZER
                parametrized = parametrized or (path in _PARAMETRIZED and not lines)
            elif owner is not Owner.OURS and len(lines) < MAX_FRAMES:
                lines.append(line_of(frame))
            frame = frame.f_back
        return self._numbers.setdefault((tuple(reversed(lines)), part, parametrized), len(self._numbers))

    def part(self, number: int) -> str:
        """Return what the operations under a stack are part of."""
        while len(self._parts) <= number:
            self._parts = [part for _, part, _ in self._numbers]
        return self._parts[number]

    def stacks(self) -> list[Stack]:
        """Return the stacks in the order of their numbers."""
        return list(self._numbers)

    def owner(self, line: Line) -> str:
        """Return whose code a line is."""
        return self._frames.owner_of_line(line).value
