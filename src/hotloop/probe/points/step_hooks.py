"""The two functions that torch calls around every optimizer's step.

They have a module of their own because torch.compile reads them where a program compiles its optimizer's step: it must
come to nothing in them, so unlike all else of the probe they are not hidden from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hotloop.probe.events import MAX_SLOT, Kind, begin, end
from hotloop.probe.probe import Probe

StepHook = Callable[[Any, Any, Any], None]


def step_hooks(probe: Probe, slot_of: Callable[[Any], int]) -> tuple[StepHook, StepHook]:
    """Return what is called before and after each step.

    Args:
        probe: the probe.
        slot_of: numbers the optimizers.
    """
    from torch.compiler import is_compiling

    recorder, boundary, ident = probe.recorder, probe.boundary, threading.get_ident
    begins = [begin(Kind.OPTIMIZER, slot) for slot in range(MAX_SLOT + 1)]
    ends = [end(Kind.OPTIMIZER, slot) for slot in range(MAX_SLOT + 1)]

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        if is_compiling():
            return
        try:
            if ident() != recorder.trainer:
                if not recorder.training_thread():
                    return
                probe.asleep = False
            recorder.mark(begins[slot_of(optimizer)])
        except Exception:  # the probe fails open
            probe.note("record:optimizer")

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        if is_compiling():
            return
        try:
            if ident() == recorder.thread:
                slot = slot_of(optimizer)
                recorder.mark(ends[slot])
                boundary.ended(Kind.OPTIMIZER, slot)
        except Exception:  # the probe fails open
            probe.note("boundary")

    return before, after
