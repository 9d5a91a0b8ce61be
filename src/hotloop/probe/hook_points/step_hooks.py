"""The functions that torch calls around every optimizer's step.

They have a module of their own because torch.compile reads them where a program compiles its optimizer's step: it must
come to nothing in them, so unlike all else of the probe they are not hidden from it.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, NamedTuple, Protocol

from hotloop.probe.probe import Probe
from hotloop.probe.record.events import MAX_SLOT, TIME_SHIFT, Kind, begin, end

StepHook = Callable[[Any, Any, Any], None]


class Slots(Protocol):
    """Numbers optimizers."""

    last: Callable[[], Any]
    """A weak reference to the optimizer of the last query."""
    last_number: int

    def of(self, optimizer: Any) -> int:
        """Return an optimizer's number."""


class Pair(NamedTuple):
    """What is called before and after each step."""

    before: StepHook
    after: StepHook


class Passing(NamedTuple):
    """What is called while the recorder is lean."""

    after: StepHook
    catch_up: Callable[[], None]
    """Records the steps that were only noted; to be called before anything else is recorded."""


_BEGINS = [begin(Kind.OPTIMIZER, slot) for slot in range(MAX_SLOT + 1)]
_ENDS = [end(Kind.OPTIMIZER, slot) for slot in range(MAX_SLOT + 1)]


def step_hooks(probe: Probe, slots: Slots) -> Pair:
    """Return what is called before and after each step.

    Args:
        probe: the probe.
        slots: numbers the optimizers.
    """
    recorder, boundary, ident, kind = probe.recorder, probe.boundary, threading.get_ident, Kind.OPTIMIZER
    begins, ends = _BEGINS, _ENDS
    begun: list[int] = []
    """Slots of the steps under way: a ZeroRedundancyOptimizer's, then that of the optimizer in it. Where no beginning
    was recorded, the end stands for both."""

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        try:
            if recorder.lean:
                return
            if ident() != recorder.trainer:
                if not recorder.training_thread():
                    return
                probe.asleep = False
            slot = slots.last_number if slots.last() is optimizer else slots.of(optimizer)
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | begins[slot])
            if slot in begun:  # it raised, and is tried again
                del begun[begun.index(slot) :]
            begun.append(slot)
        except Exception:  # the probe fails open
            probe.note("record:optimizer")

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        try:
            if ident() == recorder.thread:
                slot = slots.last_number if slots.last() is optimizer else slots.of(optimizer)
                now = (monotonic_ns() - recorder.base) << TIME_SHIFT
                if slot in begun:
                    del begun[begun.index(slot) :]
                else:
                    recorder.append(now | begins[slot])
                recorder.append(now | ends[slot])
                if not begun:
                    boundary.ended(kind, slot)
        except Exception:  # the probe fails open
            probe.note("boundary")

    return Pair(before, after)


def passing_hook(probe: Probe, slots: Slots) -> Passing:
    """Return what notes steps, and records a few of them at once.

    Args:
        probe: the probe.
        slots: numbers the optimizers.
    """
    recorder, boundary, ident, kind = probe.recorder, probe.boundary, threading.get_ident, Kind.OPTIMIZER
    noted = array("q")
    note, clock = noted.append, monotonic_ns
    known, left = 0, 0

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        """Note the time and no more: after large kernels each object that is touched is read from memory anew."""
        nonlocal known, left
        if left and id(optimizer) == known:
            left -= 1
            note(clock())
            return
        try:
            if ident() != recorder.thread:
                return
            now = clock()
            catch_up()
            slot = slots.of(optimizer)
            record(now, slot)
            boundary.ended(kind, slot)
            if recorder.lean:
                known, left = id(optimizer), boundary.may_pass()
        except Exception:  # the probe fails open
            probe.note("boundary")

    def catch_up() -> None:
        nonlocal left
        left = 0
        if recorder.thread:  # a forked child has none yet, and what was noted is its parent's
            for time in noted:
                record(time, slots.last_number)
            boundary.pass_by(len(noted))
        del noted[:]

    def record(time: int, slot: int) -> None:
        stamp = (time - recorder.base) << TIME_SHIFT
        recorder.append(stamp | _BEGINS[slot])
        recorder.append(stamp | _ENDS[slot])

    return Passing(after, catch_up)


def unread(hook: StepHook) -> StepHook:
    """Return a hook that comes to nothing where torch.compile reads it.

    Asking whether it does costs two frames at every step, so hooks take this form when torch.compile is first used.
    """
    from torch.compiler import is_compiling

    def guarded(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            hook(optimizer, args, kwargs)

    return guarded
