"""Whether a set of fresh processes shows the program as its user runs it, or what a neighbour has made of it."""

from __future__ import annotations

import math
from collections.abc import Collection
from statistics import median
from typing import NamedTuple

from hotloop.model.quantities import duration
from hotloop.stats.quietness import FAIR_SHARE
from hotloop.tune.executor import PlanSteps, SetOrder, SetRecord
from hotloop.tune.verdict.baseline import Originals


class Beside(NamedTuple):
    """Why a set does not tell what a plan gains when the user runs it."""

    reason: str
    heeding: PlanSteps = ()
    """The steps of the plan that gain what others take; without them it would tell. Empty: it tells of no plan."""


class ContentionFilter:
    """Knows how fast the program is when its user runs it.

    Args:
        originals: of all sets.
        usual_s: of a step on the clock, as the program was observed; None: not known.
        observed_busy: whether others used the machine then. Who always works beside others is told what that brings.
        heed_neighbours: names of optimizations whose gain is what other processes take.
    """

    def __init__(
        self,
        originals: Originals,
        usual_s: float | None,
        *,
        observed_busy: bool = False,
        heed_neighbours: Collection[str] = (),
    ) -> None:
        self._originals = originals
        self._usual_s = usual_s
        self._observed_busy = observed_busy
        self._heed_neighbours = heed_neighbours

    def beside(self, order: SetOrder, record: SetRecord, plan: PlanSteps) -> Beside | None:
        """Return why a set does not tell what a plan gains when the user runs it; None: it does.

        Args:
            order: the set.
            record: what it did.
            plan: an arm of it.
        """
        if not record.beside_others:
            return None
        usual_s = max(self._usual_s or 0.0, self._originals.range_s[1])
        step_s = _step_s(order, record)
        if usual_s and step_s > FAIR_SHARE * usual_s:
            return Beside(
                f"the machine was disturbed: the original program took {duration(step_s)} a step, "
                f"{duration(usual_s)} otherwise"
            )
        heeding = tuple(step for step in plan if step.name in self._heed_neighbours)
        share = record.contention.max_foreign_share
        if not heeding or share is None or self._observed_busy:
            return None
        return Beside(
            f"other processes used up to {share:.0%} of the CPU, and {heeding[-1].name} gains what they take",
            heeding,
        )


def _step_s(order: SetOrder, record: SetRecord) -> float:
    originals = record.originals(order)
    times = [times[at] for times in record.rounds for at in originals if math.isfinite(times[at])]
    return median(times) if times else 0.0
