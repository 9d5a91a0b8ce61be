"""A thread that looks at the stacks of the other threads every few milliseconds.

It is started without `threading`, so that a program that counts its threads counts as before.
"""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from hotloop.probe.instruments.frames import Frames, Line
from hotloop.probe.instruments.stacks import Stacks, lines_of
from hotloop.probe.instruments.thread_clocks import ThreadClocks

INTERVAL_S = 0.008
"""A hundred and twenty looks a second; one takes 200 to 300 us for stacks of thirty frames, 3% of a core."""
SWITCH_S = 0.0002
"""While it looks, a thread that runs Python gives the interpreter's lock up after this. With Python's own 5 ms a
data set that computes for 10 ms a batch in pure Python was seen in 27% of its time: the sampler came after it."""
PATIENCE_S = 1.0
"""The thread looks up every `INTERVAL_S`; one that has not answered by then is stuck or dead."""


class Sampler:
    """Samples until it is told to end.

    Args:
        only: the thread to look at; None: all.
        trainer: the thread whose waiting is time, too. Of any other, time on a CPU counts, where the kernel tells it:
            one that sleeps stands at its line as one does that computes. None: time counts for all of them.
        goes_on: asked before each look; the thread ends by itself when it says no.
        at_end: called in the thread when it ends by itself.
    """

    def __init__(
        self,
        only: int | None = None,
        trainer: int | None = None,
        goes_on: Callable[[], bool] = lambda: True,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._only = only
        self._trainer = trainer
        self._clocks = ThreadClocks()
        self._goes_on = goes_on
        self._at_end = at_end
        self._frames = Frames()
        self._known: dict[tuple[str, int, str], int] = {}
        self._table: list[tuple[str, int, str, str]] = []
        self._numbers: dict[bytes, int] = {}
        self._stacks: list[list[int]] = []
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

        `frames` are path, line, function and owner; `samples` are time (ns, monotonic), time that counts since the
        look before, thread, and the number of the stack, whose innermost frame comes first.
        """
        return {
            "interval_s": INTERVAL_S,
            "frames": list(self._table),
            "stacks": list(self._stacks),
            "samples": list(self._samples),
        }

    def _run(self) -> None:
        own = threading.get_ident()
        before = time.monotonic_ns()
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(min(usual_s, SWITCH_S))
        stacks = Stacks()
        try:
            while self._wanted and self._goes_on():
                time.sleep(INTERVAL_S)
                before = self._look(stacks, own, before)
            if self._wanted and self._at_end is not None:
                self._at_end()
        except Exception:  # the probe fails open; what was seen until then stays
            self._wanted = False
        finally:
            stacks.close()
            sys.setswitchinterval(usual_s)
            self._ended.set()

    def _look(self, stacks: Stacks, own: int, before: int) -> int:
        # The time is taken when the interpreter's lock has been got: who held it until then is still at that line.
        now = time.monotonic_ns()
        for ident, stack in stacks.look():
            if ident != own and (self._only is None or ident == self._only):
                spent = self._spent(ident, now - before)
                if spent:
                    self._samples.append((now, spent, ident, self._number_of(stack)))
        return now

    def _spent(self, ident: int, passed: int) -> int:
        if self._trainer in {None, ident}:
            return passed
        used = self._clocks.used_since(ident)
        return passed if used is None else used

    def _number_of(self, stack: bytes) -> int:
        known = self._numbers.get(stack)
        if known is None:
            known = self._numbers[stack] = len(self._stacks)
            self._stacks.append([self._frame(line) for line in lines_of(stack)])
        return known

    def _frame(self, line: Line) -> int:
        known = self._known.get(line)
        if known is None:
            known = self._known[line] = len(self._table)
            self._table.append((*line, self._frames.owner_of_line(line).value))
        return known
