"""What a run's records tell of its pace: the plan of all that comes after the measurement is made with it."""

from __future__ import annotations

from collections import Counter
from statistics import median

import msgspec

from hotloop.model.observation import Anchor, Phase
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.ranks import steady_windows
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.observe.steps.step_windows import boundaries

WARM_SHARE = 10
"""At most a tenth of a short program's steps pass before the first instrument looks."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a program goes.

    Attributes:
        anchor: what ends a step.
        step_s: the median step.
        startup_s: from the start of the command to its first steady step.
        warm_steps: steps before that.
        num_steps: seen in all.
        phases: time of the steady steps by phase.
    """

    anchor: Anchor
    step_s: float
    startup_s: float
    warm_steps: int
    num_steps: int
    phases: dict[Phase, float]

    @property
    def training_s(self) -> float:
        """Seconds of its steps after a short warm-up, where it takes as many as were seen."""
        return self.step_s * (self.num_steps - self.short_warm_up)

    @property
    def short_warm_up(self) -> int:
        """Steps that pass before an instrument looks in a further run: few, where there are few."""
        return max(1, min(self.warm_steps, self.num_steps // WARM_SHARE))


def pace_of(lead: Timeline | None, begin_s: float) -> Pace | None:
    """Return the pace of a run; None: it has no steady step yet.

    Args:
        lead: the records of the process that speaks for the program.
        begin_s: when the command was started.
    """
    anchor = find_anchor(lead.spans) if lead else None
    steady = steady_windows(lead, anchor) if lead and anchor else []
    if lead is None or anchor is None or not steady:
        return None
    phases: Counter[Phase] = Counter()
    for window in steady:
        phases.update(window.phases)
    ends = [lead.spans[at].end_s for at in boundaries(lead, anchor)]
    return Pace(
        anchor=anchor,
        step_s=median(window.duration_s for window in steady),
        startup_s=max(0.0, steady[0].begin_s - begin_s),
        warm_steps=sum(end_s <= steady[0].begin_s for end_s in ends),
        num_steps=len(ends),
        phases=dict(phases),
    )
