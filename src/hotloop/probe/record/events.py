"""The recorder's wire format: one 64-bit integer an event.

Bits, from the lowest: 4 slot, 1 end flag, 5 kind, the rest nanoseconds since the file's base (2^53 ns are 104 days).
A `SIZE` event carries the batch instead of a time: samples in the upper 25 bits, tokens in the lower 28.
"""

from __future__ import annotations

from enum import IntEnum

SLOT_BITS = 4
END = 1 << SLOT_BITS
KIND_SHIFT = SLOT_BITS + 1
TIME_SHIFT = KIND_SHIFT + 5
MAX_SLOT = (1 << SLOT_BITS) - 1
TOKEN_BITS = 28
BOOKKEEPING = 1
"""Slot of a pause that is too short to spoil the step it falls into: its time is taken off, the step counts."""


class Kind(IntEnum):
    """What begins or ends."""

    DATA = 1
    """A batch is fetched from a DataLoader; slot: the loader."""
    FORWARD = 2
    """A root module's forward with gradients; slot: the root."""
    EVALUATE = 3
    """A root module's forward without gradients; slot: the root."""
    BACKWARD = 4
    """`backward()` (slot 0) or `autograd.grad` (slot 1)."""
    OPTIMIZER = 5
    """An optimizer's step; slot: the optimizer."""
    COMMUNICATION = 6
    """A collective called by the program itself."""
    TRANSFER = 7
    """A copy from host to device called by the program."""
    ITERATOR = 8
    """A DataLoader is iterated anew: worker start-up; slot: the loader."""
    SAVE = 9
    """`torch.save`."""
    PAUSE = 10
    """The probe holds the program at a step boundary (slot 0), or writes down facts (slot `BOOKKEEPING`)."""
    SIZE = 11
    """Not a time: the size of the batch in the forward that follows."""
    TORCH = 12
    """`import torch` has finished (an end without a beginning)."""
    COMPILE = 13
    """torch.compile works on a frame."""
    MADE = 14
    """An optimizer was constructed (an end without a beginning, no time): the program means to train."""
    DEEP = 15
    """A profiler is on, from one step boundary to a later one; slot: its number. It nests in nothing."""
    IMPORT = 16
    """A module is imported after torch: the outermost import alone."""
    LOG = 17
    """The program writes to its standard streams, a log handler, a progress bar or a tracker."""
    EXIT = 18
    """The interpreter shuts down (an end without a beginning)."""
    WORKERS_END = 19
    """A loader's workers are ended; slot: the loader."""
    LEAN = 20
    """Only the ends of steps are recorded, and what is rare, from one step boundary on. It nests in nothing."""
    SCORE = 21
    """A root module's forward with gradients while it is in evaluation mode; slot: the root. Where a backward follows
    it was a training step all the same."""
    COLLECT = 22
    """The garbage collector goes through all objects. It nests in nothing: it comes in the middle of anything."""
    REQUEST = 23
    """A request begins (an end without a beginning): the forward that follows continues no text of the one before."""


def begin(kind: Kind, slot: int = 0) -> int:
    """Return the code of a beginning."""
    return kind << KIND_SHIFT | min(slot, MAX_SLOT)


def end(kind: Kind, slot: int = 0) -> int:
    """Return the code of an end."""
    return begin(kind, slot) | END


def size_event(samples: int, tokens: int) -> int:
    """Return the event that carries a batch's size."""
    payload = min(samples, (1 << 25) - 1) << TOKEN_BITS | min(tokens, (1 << TOKEN_BITS) - 1)
    return payload << TIME_SHIFT | begin(Kind.SIZE)
