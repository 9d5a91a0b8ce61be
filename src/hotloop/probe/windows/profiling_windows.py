"""Runs the profilers, one at a time, between step boundaries, when the launcher asks for one.

The launcher writes the number of the instrument on the control page. Each process starts it at its next boundary, ends
it by itself when it has seen enough, writes `deep-<name>-<pid>.json` and notes on the page that it has.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from time import monotonic_ns
from typing import Any

from hotloop.probe.control.control_page import (
    DEEP,
    DEEP_EVERY,
    DEEP_HOLDS,
    DEEP_KIND,
    DEEP_MS,
    DEEP_PERMILLE,
    DEEP_SLOT,
    STOP,
)
from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.probe import Probe
from hotloop.probe.process.rank import rank_and_world
from hotloop.probe.record.events import Kind, begin, end
from hotloop.probe.record.result_file import result_path, write_result_file

MAX_S = 15.0
"""A window of slow steps ends at the first boundary after this, however few steps it has; a launcher that has less
time says so on the control page."""
HOLD_S, POLL_S = 1.0, 0.0005
"""How long a process waits after a window for the next one, where the launcher asked for it: it looks every 20 ms."""

_NEVER = -1
"""No wish is this: while a window is open every boundary counts."""


def install(probe: Probe) -> None:
    """Be ready to look closer, where a launcher may ask for it."""
    if probe.page is None:
        return
    probe.boundary.windows = DeepWindows(probe, probe.page.numbers)
    for number, order in enumerate(probe.config.instruments, start=1):
        if "workers" in order:
            importlib.import_module(order["workers"]).install(probe, number)


def hide_from_dynamo() -> None:
    """Let torch.compile, once it is imported, run what it finds of the instruments as it is, and never read it."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None:
        rules.add("hotloop.probe.instruments")


class DeepWindows:
    """The instruments of this process.

    Args:
        probe: the probe.
        numbers: the control page.
    """

    def __init__(self, probe: Probe, numbers: Any) -> None:
        self.numbers = numbers
        self.settled = 0
        """The wish that has been met; while the page says the same there is nothing to do."""
        self._probe = probe
        self._number = 0
        self._active: Instrument | None = None
        self._profiled = False
        """The last window was one of torch's profiler."""
        self._anchors = self.steps = 0
        self._begin_ns = 0
        self._watching_compile = False

    def ended(self, kind: Kind, slot: int) -> None:
        """Called at what may end a step, while the page's wish is not met."""
        wanted = self.numbers[DEEP]
        if not wanted:
            self.finish()
            self.settled = 0
        elif self._is_anchor(kind, slot):
            if self._number == 0:
                self._start(wanted)
            else:
                self._count()
                if self._number == 0 and self.numbers[DEEP_HOLDS]:
                    self._go_on()

    def finish(self) -> None:
        """End the window that is open, if one is: the program may leave in the middle of it."""
        if self._number:
            self._stop(cut=True)

    def after_fork(self) -> None:
        """In a forked child: it has no window of its own."""
        active, self._active = self._active, None
        self._number = self.settled = 0
        if active is not None:
            with self._probe.survive("deep:fork"):
                active.after_fork()

    def _go_on(self) -> None:
        """Start the next instrument at the boundary at which the last one ended, as soon as it is ordered.

        Ranks do not wait: their windows end at different boundaries, and one may need another to come to its own. After
        torch's profiler the next boundary is taken: this one lies within the range `Optimizer.step`, which began under
        that profiler. Where another profiler is on when the range ends, torch writes into memory that it has freed.
        """
        if rank_and_world()[1] > 1:
            return
        numbers, until_ns = self.numbers, monotonic_ns() + int(HOLD_S * 1e9)
        with self._probe.boundary.clock.still():
            self._probe.recorder.mark(begin(Kind.PAUSE))
            while numbers[DEEP] == self.settled and not numbers[STOP] and monotonic_ns() < until_ns:
                time.sleep(POLL_S)
            self._probe.recorder.mark(end(Kind.PAUSE))
        if numbers[DEEP] not in (0, self.settled) and not self._profiled:
            self._start(numbers[DEEP])

    def _is_anchor(self, kind: Kind, slot: int) -> bool:
        return self.numbers[DEEP_KIND] == kind and self.numbers[DEEP_SLOT] in (-1, slot)

    def _start(self, wanted: int) -> None:
        self._probe.boundary.clock.drain()
        self._probe.recorder.mark(begin(Kind.DEEP, wanted))
        self._probe.facts.settle()
        self._number, self._anchors, self.steps = wanted, 0, 0
        self.settled = _NEVER
        try:
            self._active = self._make(self._order())
            self._watch_compile()
            self._begin_ns = monotonic_ns()
            self._active.start()
        except Exception as reason:  # the probe fails open; the reason is kept with the result
            self._drop()
            self._close(None, _said(reason))

    def _drop(self) -> None:
        """Let an instrument that failed put back what it has changed."""
        active, self._active = self._active, None
        if active is not None:
            with contextlib.suppress(Exception):
                active.stop()

    def _order(self) -> dict[str, Any]:
        return self._probe.config.instruments[self._number - 1]

    def _make(self, order: dict[str, Any]) -> Instrument:
        cls = getattr(importlib.import_module(order["module"]), order["cls"])
        hide_from_dynamo()
        instrument: Instrument = cls(self._probe, **order.get("params", {}))
        return instrument

    def _count(self) -> None:
        self._anchors += 1
        if self._anchors % self.numbers[DEEP_EVERY] or self._active is None:
            return
        self.steps += 1
        active = self._active
        with self._probe.survive("deep:step"):
            active.step()
        spent = (monotonic_ns() - self._begin_ns) * 1e-9
        wanted_s = active.seconds * (self.numbers[DEEP_PERMILLE] or 1000) / 1000
        enough = spent >= wanted_s and self.steps >= active.min_steps
        most_s = self.numbers[DEEP_MS] / 1000 or MAX_S
        if enough or self.steps >= active.max_steps or spent >= most_s:
            self._stop()

    def _stop(self, *, cut: bool = False) -> None:
        active, self._active = self._active, None
        self._profiled = active is not None and active.profiles
        end_ns = monotonic_ns()
        value, error = None, None
        try:
            value = active.stop() if active is not None else None
        except Exception as reason:  # the probe fails open; the reason is kept with the result
            error = _said(reason)
        self._close(value, error, end_ns, cut=cut)

    def _close(self, value: Any, error: str | None, end_ns: int | None = None, *, cut: bool = False) -> None:
        """Write the result, whole or not at all, and say so."""
        with self._probe.survive("deep:write"):
            try:
                self._write(value, error, end_ns or monotonic_ns(), cut=cut)
            except Exception as reason:  # the launcher is told why there is no result
                failed = f"its result could not be written: {_said(reason)}"
                self._write(None, failed, end_ns or monotonic_ns(), cut=cut)
        self._probe.boundary.clock.drain()
        self._probe.recorder.mark(end(Kind.DEEP, self._number))
        self.settled, self._number = self._number, 0
        self._probe.boundary.looked(self.settled)

    def _write(self, value: Any, error: str | None, end_ns: int, *, cut: bool) -> None:
        name, folder = self._order()["name"], self._probe.folder
        assert folder is not None
        result = {
            "name": name,
            "pid": os.getpid(),
            "rank": rank_and_world()[0],
            "steps": self.steps,
            "begin_ns": self._begin_ns,
            "end_ns": end_ns,
            "value": value,
            "error": error,
            "cut": cut,
        }
        write_result_file(result_path(folder, name, os.getpid()), result)

    # torch.compile -------------------------------------------------------------------------------------------------

    def _watch_compile(self) -> None:
        """Let the instrument be out of the way while code is compiled; known once dynamo is imported."""
        if self._watching_compile or "torch._dynamo" not in sys.modules:
            return
        self._watching_compile = True
        self._probe.on_compile.append((lambda: self._tell("step_aside"), lambda: self._tell("step_back")))

    def _tell(self, what: str) -> None:
        active = self._active
        if active is not None:
            with contextlib.suppress(Exception):  # the probe fails open, inside a compiler
                getattr(active, what)()


def _said(reason: Exception) -> str:
    return str(reason) if isinstance(reason, Unavailable) else f"{type(reason).__name__}: {reason}"
