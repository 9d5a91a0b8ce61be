"""Not a phase of the step: the garbage collector's passes over all objects, which stop the program wherever it is.

Collections of the younger generations come many times a second and take microseconds: they are not kept.
"""

from __future__ import annotations

import gc
from threading import get_ident
from time import monotonic_ns
from typing import Any

from hotloop.probe.probe import Probe
from hotloop.probe.record.events import TIME_SHIFT, Kind, begin, end

OLDEST = 2


def install(probe: Probe) -> None:
    """Ask the collector to be told."""
    recorder, begins, ends = probe.recorder, begin(Kind.COLLECT), end(Kind.COLLECT)
    began = 0

    def told(phase: str, about: dict[str, Any]) -> None:
        nonlocal began
        if about["generation"] != OLDEST:
            return
        if phase == "start":
            began = monotonic_ns()
        elif began and get_ident() == recorder.thread:
            # Both at the end, and past any follower: the collector may have come in the middle of a recording.
            recorder.aside((began - recorder.base) << TIME_SHIFT | begins)
            recorder.aside((monotonic_ns() - recorder.base) << TIME_SHIFT | ends)

    gc.callbacks.append(told)
