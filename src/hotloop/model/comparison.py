"""Two programs, or one program twice: which is faster, phase by phase, and what differs between them."""

from __future__ import annotations

import msgspec

from hotloop.model.ratio import Ratio
from hotloop.model.tree_memory import TreeMemory

SCHEMA = 1


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two."""

    name: str
    """The session, or the command."""
    command: tuple[str, ...]
    step_s: float | None
    """Median; of the second of two programs that took turns that of the first, by their ratio. None: not measured."""
    low_s: float | None = None
    high_s: float | None = None
    phases: dict[str, float] = {}
    """Seconds of each phase of a step."""
    peak_bytes: int | None = None
    tree: TreeMemory | None = None
    """Of all its processes together, on the host; None: not measured."""
    batch_size: int | None = None
    """Of the loader that feeds the steps; None: there is none, or it has none."""
    tokens_per_step: float | None = None
    """None: no tokens were seen."""


class TunedSide(msgspec.Struct, frozen=True, kw_only=True):
    """What `tune` found for one of the two."""

    steps: dict[str, Ratio]
    """Of the plan, by label, what each is worth on top of those before it; empty: nothing was proven to help."""
    speedup: Ratio | None
    """Confirmed, against the program as it was; None: the plan is empty."""
    learns_the_same: bool | None
    """None: not compared."""


class PhaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of the step on both sides."""

    before_s: float | None
    """None: the phase does not occur."""
    after_s: float | None
    ratio: Ratio | None = None
    """Above 1: it takes less time on the second side; None: it is on one side only, or too little was measured."""


class Change(msgspec.Struct, frozen=True):
    """Something that differs."""

    what: str
    before: str
    after: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The first side against the second."""

    before: Side
    after: Side
    ratio: Ratio | None
    """Above 1: the second is faster; None: they cannot be compared."""
    per: str = "step"
    """What the ratios are of: a `step`; where batches have other sizes, a `token`, or a `sample`."""
    scale: float = 1.0
    """Of these, in a step of the second for each in a step of the first."""
    verdict: str
    """`faster`, `slower`, `same`, `inconclusive` or `invalid`: what may be said of the second."""
    reason: str
    """The figures that the verdict rests on, in a sentence."""
    phases: dict[str, PhaseChange]
    changes: tuple[Change, ...] = ()
    """Of machine, packages, settings and data."""
    tuned: tuple[TunedSide | None, TunedSide | None] = (None, None)
    """None: it was not tuned, or is a command."""
    code: tuple[str, ...] | None = None
    """Commits and files that differ, as Git tells them; None: not known."""
    rounds: tuple[tuple[tuple[float, ...], ...], ...] = ()
    """Raw samples of a duet: seconds a step of both, round by round, pair by pair."""
    method: str = ""
    foreign_share: float | None = None
    """Of the machine, that other processes used while it was measured, where that weighs; None: not known, or quiet."""
    schema: int = SCHEMA
