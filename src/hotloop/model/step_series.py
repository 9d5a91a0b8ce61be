"""Every step of one process, as it was timed: what all figures of the step are a function of."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class StepKind(IntEnum):
    """Whether a step is of those that figures are taken from."""

    STEADY = 0
    WARM_UP = 1
    IRREGULAR = 2
    """Of another shape: an evaluation, a new epoch or a checkpoint was in it, or the probe held it."""
    PROFILED = 3
    """A profiler was on."""
    UNTIMED = 4
    """Only its end was recorded: it has no phases."""


class TimelineSpan(msgspec.Struct, frozen=True):
    """Something that began and ended in the training thread."""

    name: str
    begin_s: float
    """Since the command was started, as is the end."""
    end_s: float
    depth: int


class StepSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one process in order, as columns of little-endian numbers.

    `begin_s` is of 64 bits, `duration_s` and the phases of 32, `kind` of 8 (a `StepKind`).
    """

    rank: int | None
    pid: int
    num: int
    begin_s: bytes
    """Since the command was started."""
    duration_s: bytes
    phases: dict[str, bytes]
    """Seconds of each phase; NaN in steps that are `UNTIMED`."""
    kind: bytes
    work: dict[str, bytes] = {}
    """What each step had to do, of 32 bits: `calls` of models, `samples` and `tokens` that went into them; NaN in steps
    that are `UNTIMED`. Empty: of an earlier version."""
    epochs: tuple[int, ...] = ()
    """Steps, counted from 0, in which the training loader was started anew."""
    evaluations: tuple[int, ...] = ()
    checkpoints: tuple[int, ...] = ()
    spans: tuple[TimelineSpan, ...] = ()
    """The last steady steps in detail."""
