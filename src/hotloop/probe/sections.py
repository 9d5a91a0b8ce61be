"""Mark the beginning and the end of something that the program does, so that no failure of ours reaches the program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, NamedTuple

from hotloop.probe.probe import Probe
from hotloop.probe.record.events import TIME_SHIFT, Kind, begin, end

PASSED = frozenset({Kind.DATA, Kind.TRANSFER, Kind.COMMUNICATION})
"""Phases that pass unrecorded while the recorder is lean."""


class Section(NamedTuple):
    """The two marks of one kind and slot."""

    enter: Callable[[], bool]
    """Marks the beginning; returns whether this call is recorded at all."""
    leave: Callable[[], None]
    """Marks the end."""


def section(probe: Probe, kind: Kind, slot: int = 0, *, trains: bool = False, aside: bool = False) -> Section:
    """Return the marks of a kind and slot.

    Args:
        probe: the probe.
        kind: what begins and ends.
        slot: which of its kind.
        trains: only training does this: it wakes a forked child and decides which thread is recorded.
        aside: helpers do this too (imports, logging): it never decides which thread is recorded.
    """
    recorder, ident, main = probe.recorder, threading.get_ident, threading.main_thread().ident
    begins, ends = begin(kind, slot), end(kind, slot)
    passes, wakes = kind in PASSED, kind is Kind.ITERATOR
    where = f"record:{kind.name.lower()}"

    def enter() -> bool:
        if passes and recorder.lean:
            return False
        try:
            if wakes:
                probe.boundary.pace.wake()
            if recorder.catch_up is not None:
                recorder.catch_up()
            if probe.asleep or (ident() != recorder.thread and not recorder.own_thread()):
                return False
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | begins)
        except Exception:  # the probe fails open
            probe.note(where)
            return False
        return True

    def enter_training() -> bool:
        try:
            if ident() != recorder.trainer:
                if not recorder.training_thread():
                    return False
                probe.asleep = False
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | begins)
        except Exception:  # the probe fails open
            probe.note(where)
            return False
        return True

    def enter_aside() -> bool:
        try:
            if probe.asleep or ident() != (recorder.thread or main) or not recorder.has_room():
                return False
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | begins)
        except Exception:  # the probe fails open
            probe.note(where)
            return False
        return True

    def leave() -> None:
        try:
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | ends)
        except Exception:  # the probe fails open
            probe.note(where)

    return Section(enter_training if trains else enter_aside if aside else enter, leave)


def around(marks: Section, original: Any) -> Any:
    """Return a function body that marks `original`'s calls; the caller gives it a name and a signature."""
    enter, leave = marks

    def timed(*args: Any, **kwargs: Any) -> Any:
        if not enter():
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            leave()

    return timed
