"""The two functions that torch calls around every optimizer's step.

They have a module of their own because torch.compile reads them where a program compiles its optimizer's step: it must
come to nothing in them, so unlike all else of the probe they are not hidden from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Protocol

from hotloop.probe.events import MAX_SLOT, TIME_SHIFT, Kind, begin, end
from hotloop.probe.probe import Probe

StepHook = Callable[[Any, Any, Any], None]


class Slots(Protocol):
    """Numbers optimizers."""

    last: Callable[[], Any]
    """A weak reference to the optimizer asked for last."""
    last_number: int

    def of(self, optimizer: Any) -> int:
        """Return an optimizer's number."""


def step_hooks(probe: Probe, slots: Slots) -> tuple[StepHook, StepHook]:
    """Return what is called before and after each step.

    Args:
        probe: the probe.
        slots: numbers the optimizers.
    """
    recorder, boundary, ident, kind = probe.recorder, probe.boundary, threading.get_ident, Kind.OPTIMIZER
    begins = [begin(Kind.OPTIMIZER, slot) for slot in range(MAX_SLOT + 1)]
    ends = [end(Kind.OPTIMIZER, slot) for slot in range(MAX_SLOT + 1)]
    passed = False  # the beginning was let pass, so that the end stands for both

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        nonlocal passed
        if recorder.lean:
            passed = True
            return
        try:
            if ident() != recorder.trainer:
                if not recorder.training_thread():
                    return
                probe.asleep = False
            slot = slots.last_number if slots.last() is optimizer else slots.of(optimizer)
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | begins[slot])
            passed = False
        except Exception:  # the probe fails open
            probe.note("record:optimizer")

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        nonlocal passed
        try:
            if ident() == recorder.thread:
                slot = slots.last_number if slots.last() is optimizer else slots.of(optimizer)
                now = (monotonic_ns() - recorder.base) << TIME_SHIFT
                if passed:
                    passed = False
                    recorder.append(now | begins[slot])
                recorder.append(now | ends[slot])
                boundary.ended(kind, slot)
        except Exception:  # the probe fails open
            probe.note("boundary")

    return before, after


def unread(hook: StepHook) -> StepHook:
    """Return a hook that comes to nothing where torch.compile reads it.

    Asking whether it does costs two frames at every step, so hooks take this form when torch.compile is first used.
    """
    from torch.compiler import is_compiling

    def guarded(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            hook(optimizer, args, kwargs)

    return guarded
