"""What holds the peak of memory: bytes by class, by line and by module."""

from __future__ import annotations

import msgspec

from hotloop.model.memory_plan import Held

CLASSES = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "buffers": "buffers",
    "activations": "activations",
    "earlier_steps": "graphs of earlier steps",
    "inputs": "inputs",
    "temporaries": "temporaries",
    "other": "other tensors",
    "unattributed": "unattributed",
}
"""The classes of an account, and what they are called."""


class HeldLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of Python, and the tensors that its operations made.

    Attributes:
        path: of the file; the innermost line outside torch, the program's own or a library's.
        operator: the operator that made most of them, as torch calls it.
        held_bytes: of all of them.
        num: how many.
        shape: of the largest; None: not told.
        dtype: of the largest.
        in_backward: they were made in the backward of this line's operations.
    """

    path: str
    line: int
    function: str
    operator: str
    held_bytes: int
    num: int = 1
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    in_backward: bool = False


class HeldTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that the program held before the steps, and that belongs to no model and no optimizer.

    Attributes:
        keeps_graph: it has a graph, so that what that graph saved is held, too.
    """

    held_bytes: int
    shape: tuple[int, ...]
    dtype: str
    keeps_graph: bool


class StepPeak(msgspec.Struct, frozen=True, kw_only=True):
    """The peak of one phase, by class."""

    peak_bytes: int
    by_class: dict[str, int]


class PeakAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What tensors hold at the peak of a few training steps.

    Attributes:
        device: whose memory.
        peak_bytes: of all tensors together; the classes add up to it.
        low_bytes: peak of the step with the lowest one.
        high_bytes: peak of the step with the highest one.
        num_steps: that were watched.
        phase: in which the peak was reached.
        reached_by: the line whose operation reached it; None: not known.
        held: bytes by class, by module, by line; modules and lines are of activations and temporaries.
        lines: the lines whose activations and temporaries hold most of the peak.
        activations: the lines that save most for the backward, at the beginning of the backward that has most.
        others: tensors that belong to no model and no optimizer, the largest first.
        phases: the peak of each phase, by class.
        method: how it was found.
    """

    device: str
    peak_bytes: int
    low_bytes: int
    high_bytes: int
    num_steps: int
    phase: str
    reached_by: HeldLine | None
    held: Held
    lines: tuple[HeldLine, ...] = ()
    activations: tuple[HeldLine, ...] = ()
    others: tuple[HeldTensor, ...] = ()
    phases: dict[str, StepPeak] = {}
    method: str = ""

    @property
    def unattributed_bytes(self) -> int:
        """What was allocated before the steps by nobody who could be found."""
        return self.held.by_class.get("unattributed", 0)

    def share(self, name: str) -> float:
        """Return the part of a class in the peak, 0 to 1."""
        return self.held.by_class.get(name, 0) / self.peak_bytes if self.peak_bytes else 0.0
