"""A thread that looks at the stacks of the other threads every few milliseconds.

It is started without `threading`, so that a program that counts its threads counts as before.
"""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from hotloop.probe.instruments.frames import Frames, line_of

INTERVAL_S = 0.005
"""Two hundred looks a second; one takes 20 to 50 us for stacks of thirty frames, under 1% of a core."""
SWITCH_S = 0.0002
"""While it looks, a thread that runs Python gives the interpreter's lock up after this. With Python's own 5 ms a
data set that computes for 10 ms a batch in pure Python was seen in 27% of its time: the sampler came after it."""
MAX_DEPTH = 200
"""The innermost frames of a deeper stack are kept."""
PATIENCE_S = 1.0
"""The thread looks up every `INTERVAL_S`; one that has not answered by then is stuck or dead."""


class Sampler:
    """Samples until it is told to end.

    Args:
        only: the thread to look at; None: all.
        goes_on: asked before each look; the thread ends by itself when it says no.
        at_end: called in the thread when it ends by itself.
    """

    def __init__(
        self,
        only: int | None = None,
        goes_on: Callable[[], bool] = lambda: True,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._only = only
        self._goes_on = goes_on
        self._at_end = at_end
        self._frames = Frames()
        self._codes: dict[tuple[CodeType, int], int] = {}
        self._table: list[tuple[str, int, str, str]] = []
        self._stacks: dict[tuple[int, ...], int] = {}
        self._samples: list[tuple[int, int, int, int]] = []
        self._wanted = False
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to look."""
        self._wanted = True
        self._ended.clear()
        _thread.start_new_thread(self._run, ())

    def end(self) -> None:
        """Stop looking."""
        self._wanted = False
        self._ended.wait(PATIENCE_S)

    def value(self) -> dict[str, Any]:
        """Return what was seen.

        `frames` are path, line, function and owner; `samples` are time (ns, monotonic), time since the look before,
        thread, and the number of the stack, whose innermost frame comes first.
        """
        return {
            "interval_s": INTERVAL_S,
            "frames": list(self._table),
            "stacks": [list(stack) for stack in list(self._stacks)],
            "samples": list(self._samples),
        }

    def _run(self) -> None:
        own = threading.get_ident()
        before = time.monotonic_ns()
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(min(usual_s, SWITCH_S))
        try:
            while self._wanted and self._goes_on():
                time.sleep(INTERVAL_S)
                before = self._look(own, before)
            if self._wanted and self._at_end is not None:
                self._at_end()
        except Exception:  # the probe fails open; what was seen until then stays
            self._wanted = False
        finally:
            sys.setswitchinterval(usual_s)
            self._ended.set()

    def _look(self, own: int, before: int) -> int:
        # The time is taken when the interpreter's lock has been got: who held it until then is still at that line.
        now = time.monotonic_ns()
        stacks = sys._current_frames()
        for ident, frame in stacks.items():
            if ident != own and (self._only is None or ident == self._only):
                self._samples.append((now, now - before, ident, self._stack(frame)))
        return now

    def _stack(self, frame: FrameType | None) -> int:
        numbers: list[int] = []
        while frame is not None and len(numbers) < MAX_DEPTH:
            numbers.append(self._frame(frame))
            frame = frame.f_back
        return self._stacks.setdefault(tuple(numbers), len(self._stacks))

    def _frame(self, frame: FrameType) -> int:
        line = frame.f_lineno or 0
        known = self._codes.get((frame.f_code, line))
        if known is None:
            known = self._codes[frame.f_code, line] = len(self._table)
            self._table.append((*line_of(frame), self._frames.owner(frame).value))
        return known
