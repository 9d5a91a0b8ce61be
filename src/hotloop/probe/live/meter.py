"""Steps, their times and phases, counted from events: what every kind of metrics shows.

Told from the process that trains, from its first optimizer step on: helpers that import torch tell nothing. Times are
the host's: on a device that works asynchronously a phase is the time until its work was handed over, and the step is
true on average.
"""

from __future__ import annotations

from typing import Protocol

from hotloop.probe.live.phases import NS, PHASES, PhaseClock, decoded
from hotloop.probe.record.events import TIME_SHIFT, TOKEN_BITS, Kind

BUCKETS = (*(base * 10**power for power in range(-4, 2) for base in (1, 2, 5)), 100.0)
"""Seconds: 0.1 ms to 100 s."""
MAX_EARLY = 10_000
"""Events before the first step; of a long evaluation before it the rest is not counted."""
STEPS, STEP_S, SAMPLES, PHASE_S = (
    "Optimizer steps",
    "From step to step",
    "Samples of training batches",
    "Host time in each phase",
)
"""What the metrics are, in words."""


class Sink(Protocol):
    """Where counts go."""

    def open(self) -> None:
        """Called before anything counts, in the process that trains."""

    def step(self, seconds: float | None) -> None:
        """Count a step; None: the first, which has no time."""

    def samples(self, num: int) -> None:
        """Count samples."""

    def phase(self, name: str, seconds: float) -> None:
        """Add time in a phase."""


class Meter:
    """Follows a recorder.

    Args:
        sink: where the counts go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._clock = PhaseClock()
        self._stepper: int | None = None
        """The optimizer whose steps are counted: of several, the one that steps first."""
        self._last_ns: int | None = None
        self._early: list[int] = []

    def keep(self, event: int) -> None:
        """Count an event; those before the first step wait for it."""
        kind, slot, ends, _ = decoded(event)
        if self._stepper is None:
            if len(self._early) < MAX_EARLY:
                self._early.append(event)
            if kind is Kind.OPTIMIZER and ends:
                self._stepper = slot
                self._sink.open()
                early, self._early = self._early, []
                for each in early:
                    self._count(each)
            return
        self._count(event)

    def _count(self, event: int) -> None:
        kind, slot, ends, now_ns = decoded(event)
        if kind is Kind.SIZE:
            self._sink.samples((event >> TIME_SHIFT) >> TOKEN_BITS)
        elif kind not in PHASES:
            return
        elif not ends:
            self._clock.begin(kind, now_ns)
        else:
            spent_s = self._clock.end(kind, now_ns)
            if spent_s is not None:
                self._sink.phase(PHASES[kind], spent_s)
            if kind is Kind.OPTIMIZER and slot == self._stepper:
                self._sink.step(None if self._last_ns is None else (now_ns - self._last_ns) * NS)
                self._last_ns = now_ns

    def flush(self) -> None:
        """Nothing is pending."""
