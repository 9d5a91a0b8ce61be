"""The plan that the switched knobs predict: the best state of the model, without what may be nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist

from hotloop.model.optimization import Candidate, Numerics
from hotloop.stats.student import student_cdf
from hotloop.stats.switching import SwitchFit
from hotloop.tune.design.patterns import exclude

MIN_GAIN = math.log(1.01)
"""Less is never claimed (`stats.verdict.MIN_MARGIN`)."""
DOUBT = {Numerics.EXACT: 0.15, Numerics.TOLERANCE: 0.05, Numerics.SEMANTIC: 0.05}
"""Chance that any of the knobs that bring nothing is taken for one that does: it would ride along in the plan. What
changes the numbers has to be surer."""
LARGE = math.log(1.06)
"""Such a gain is worth a proof where a single knob would be sure enough, however many others were switched with it."""
LEANS = 1 / 3
"""Chance that a knob costs time, as expected and as measured, up to which it joins what is proven anyway."""
MAX_ENUMERATED = 12
"""4,096 states take some ten milliseconds; of more knobs the best ones alone are combined."""


def predicted_plan(
    fit: SwitchFit, knobs: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]]
) -> tuple[Candidate, ...]:
    """Return the knobs that are expected to make the program fastest together, the largest gain first."""
    known = [knob for knob in knobs if knob.label in fit.knobs]
    known = sorted(known, key=lambda knob: -fit.gain([knob.label])[0])[:MAX_ENUMERATED]
    best = list(_best_state(fit, known, conflicts))
    while best:
        weakest = max(best, key=lambda knob: _lack(fit, best, knob))
        if _lack(fit, best, weakest) <= 1 and own_gain(fit, best, weakest) >= MIN_GAIN:
            break
        best.remove(weakest)
    return tuple(sorted(best, key=lambda knob: -own_gain(fit, best, knob)))


def _lack(fit: SwitchFit, best: Sequence[Candidate], knob: Candidate) -> float:
    """Return how many times as doubtful a knob is as it may be."""
    others = 1 if own_gain(fit, best, knob) >= LARGE else len(fit.knobs)
    return doubt(fit, best, knob) * others / DOUBT[knob.numerics]


def own_gain(fit: SwitchFit, plan: Sequence[Candidate], knob: Candidate) -> float:
    """Return the log gain of a knob beside the plan's others."""
    return fit.gain(*_with_and_without(plan, knob))[0]


def doubt(fit: SwitchFit, plan: Sequence[Candidate], knob: Candidate) -> float:
    """Return the chance that a knob that brings nothing beside the plan's others looks as good."""
    gain, error = fit.gain(*_with_and_without(plan, knob))
    return student_cdf(-gain / error, fit.df) if error > 0 else float(gain <= 0)


def leaning(
    fit: SwitchFit,
    plan: Sequence[Candidate],
    knobs: Sequence[Candidate],
    conflicts: Mapping[str, frozenset[str]],
) -> list[Candidate]:
    """Return exact knobs beside a plan that are likelier to gain than to cost, the largest expectation first.

    What is bounded by a part of this program's step is expected to gain for a reason. Where switching is no surer than
    that expectation both count, by their variances: of a fused optimizer of which 1.07 is expected, and that comes out
    at 1.02 [0.96, 1.08], 1.03 is likely.
    """
    beside = [step for step in plan if step.label in fit.knobs]
    found = [
        (mean, knob)
        for knob in knobs
        if knob.numerics is Numerics.EXACT
        and knob.max_gain is not None
        and knob.expected > 1
        and knob.label in fit.knobs
        and not any(step == knob or exclude(step, knob, conflicts) for step in plan)
        for mean, chance in [
            _expectation(math.log(knob.expected), *fit.gain(*_with_and_without(beside, knob)))
        ]
        if mean >= MIN_GAIN and chance <= LEANS
    ]
    return [knob for _, knob in sorted(found, key=lambda one: -one[0])]


def _expectation(expected: float, gain: float, error: float) -> tuple[float, float]:
    """Return the log gain that two sources make likely, and the chance that it is none.

    Args:
        expected: log gain; its standard deviation is as large, so that nothing and twice as much are as likely.
        gain: log gain that was measured.
        error: its standard error.
    """
    weights = expected**-2, max(error, 1e-9) ** -2
    mean = (weights[0] * expected + weights[1] * gain) / sum(weights)
    return mean, NormalDist().cdf(-mean * math.sqrt(sum(weights)))


def _with_and_without(plan: Sequence[Candidate], knob: Candidate) -> tuple[list[str], list[str]]:
    labels = [one.label for one in plan]
    return [*labels, knob.label], [label for label in labels if label != knob.label]


def _best_state(
    fit: SwitchFit, knobs: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]]
) -> tuple[Candidate, ...]:
    states = (
        state
        for size in range(len(knobs) + 1)
        for state in combinations(knobs, size)
        if not any(exclude(one, other, conflicts) for one, other in combinations(state, 2))
    )
    return max(states, key=lambda state: fit.gain([knob.label for knob in state])[0])
