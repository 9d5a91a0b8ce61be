"""The plan that is believed to be the fastest: of what is shown to help, what goes together best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hotloop.model.optimization import Candidate
from hotloop.stats.verdict import MIN_MARGIN
from hotloop.tune.design.patterns import exclude
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import Gains
from hotloop.tune.goals.limit import Limit
from hotloop.tune.plan.exact_first import exact_first

MIN_GAIN = math.log(1 + MIN_MARGIN)
"""Less is never claimed."""
CHANCE = 0.1
"""That a candidate which brings nothing is taken for one that helps: the whole is proven afterwards, and what is then
likelier to cost time than to gain leaves it. A tenth for all that were measured together proved 1.9% ± 0.7 less on
recorded noise, with a third of the steps that bring nothing."""
SURE = NormalDist().inv_cdf(1 - CHANCE)
MAX_ENUMERATED = 12
"""4,096 states take some ten milliseconds; of more candidates the best ones alone are combined."""


def threshold(deviation: float) -> float:
    """Return the log gain of such a deviation from which a candidate is shown to help."""
    return max(MIN_GAIN, SURE * deviation)


def best_plan(
    gains: Gains,
    candidates: Sequence[Candidate],
    conflicts: Mapping[str, frozenset[str]],
    limit: Limit | None = None,
) -> PlanSteps:
    """Return the plan with the greatest expected gain all of whose steps are shown to help beside the others.

    Args:
        gains: what is believed.
        candidates: that were measured, and may be part of it.
        conflicts: names that cannot be on together.
        limit: that the plan has to stay within; None: there is none.
    """
    able = sorted(candidates, key=lambda one: -_promise(gains, one, limit))[:MAX_ENUMERATED]
    while able:
        plan = _best_state(gains, able, conflicts, limit)
        lacking = [(_lack(gains, plan, step, limit), step) for step in plan]
        most, weakest = max(lacking, key=lambda one: one[0], default=(0.0, None))
        if most <= 0 or weakest is None:
            return exact_first([one for one in candidates if one in plan])  # always in the same order
        able.remove(weakest)
    return ()


def is_within(limit: Limit | None, plan: Sequence[Candidate]) -> bool:
    """Whether a plan is expected to stay within a limit."""
    return limit is None or limit.gains.gain({one.label for one in plan})[0] >= limit.least


def _promise(gains: Gains, one: Candidate, limit: Limit | None) -> float:
    """Return what a candidate brings alone, of the one or of the other."""
    own = gains.gain({one.label})[0]
    return own if limit is None else max(own, limit.gains.gain({one.label})[0])


def _lack(gains: Gains, plan: Sequence[Candidate], step: Candidate, limit: Limit | None) -> float:
    """Return the log gain by which a step of a plan misses being shown to help beside the others.

    A step without which the plan is not within the limit helps where it is shown to bring it nearer.
    """
    after = {one.label for one in plan}
    needed = limit is not None and not is_within(limit, [one for one in plan if one != step])
    lacks = []
    for each in (gains, limit.gains) if limit is not None and needed else (gains,):
        gain, deviation = each.gain(after, after - {step.label})
        lacks.append(threshold(deviation) - gain)
    return min(lacks)


def _best_state(
    gains: Gains, able: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]], limit: Limit | None
) -> tuple[Candidate, ...]:
    """Return the state with the largest expected gain; of equals, the one with the fewest steps.

    Where none is within the limit it is the one that comes nearest.
    """
    states = np.array(sorted(product((False, True), repeat=len(able)), key=sum))
    for (at, one), (also, other) in combinations(enumerate(able), 2):
        if exclude(one, other, conflicts):
            states = states[~(states[:, at] & states[:, also])]
    columns = {one.label: states[:, at] for at, one in enumerate(able)}
    total = _totals(gains, columns, len(states))
    if limit is not None:
        others = _totals(limit.gains, columns, len(states))
        within = others >= limit.least
        total = np.where(within, total, -np.inf) if within.any() else others
    best = states[int(total.argmax())]
    return tuple(one for one, is_on in zip(able, best, strict=True) if is_on)


def _totals(gains: Gains, columns: Mapping[str, npt.NDArray[np.bool_]], num: int) -> npt.NDArray[np.float64]:
    """Return the expected log gain of each state."""
    total = np.zeros(num)
    for term, gain in zip(gains.terms, gains.means, strict=True):
        if set(term) <= columns.keys():
            total += gain * np.logical_and.reduce([columns[label] for label in term])
    return total
