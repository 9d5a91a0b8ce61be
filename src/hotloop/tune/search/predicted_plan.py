"""The plan that the switched knobs predict: the best state of the model, without what may be nothing.

What was measured is weighed with what was expected. Of eight knobs that are switched in a minute one that brings
nothing comes out at 1.06 now and then; a part of the step that is 1% of it cannot gain that, and a part of 6% can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from statistics import NormalDist

import numpy as np

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
LEANS = {Numerics.EXACT: 1 / 3, Numerics.TOLERANCE: 0.05, Numerics.SEMANTIC: 0.05}
"""Chance that a knob costs time, up to which it joins what is proven anyway."""
TOGETHER = 0.1
"""Chance that knobs of which none is sure gain nothing together, up to which they are worth a proof of their own."""
UNBOUNDED = 0.1
"""Standard deviation of the log gain that is expected of a knob that no part of the step bounds, around nothing: what
it brought other programs says when it is tried, not what it brings this one. Where more is expected, so much may come:
half precision of which 1.8 is expected, and which is measured at 1.3 within a sixth, is not 1.1."""
ORDER = 0.9
"""Chance that a variant is faster than another, from which it is taken although less was expected of it. Of PPO's
optimizer `foreach` could not be told from `fused` in 80 s, and the plan with it was 6% behind the one by hand."""
MAX_ENUMERATED = 12
"""4,096 states take some ten milliseconds; of more knobs the best ones alone are combined."""
Lack = Callable[[SwitchFit, Sequence[Candidate], Candidate], float]
"""How many times as doubtful a knob is beside others as it may be."""


def predicted_plan(
    fit: SwitchFit, knobs: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]]
) -> tuple[Candidate, ...]:
    """Return the knobs that are expected to make the program fastest together, the largest gain first."""
    return _likely(believed(fit, knobs), (), knobs, conflicts, _lack)


def leaning(
    fit: SwitchFit,
    plan: Sequence[Candidate],
    knobs: Sequence[Candidate],
    conflicts: Mapping[str, frozenset[str]],
) -> tuple[Candidate, ...]:
    """Return knobs beside a plan that are likelier to gain than to cost, the largest gain first.

    Beside no plan they are to be surer together than each of them is: on a GAN a layout and a fused optimizer came
    out at 1.04 and 1.07, neither told from nothing, and were 1.14 [1.08, 1.20] by hand.
    """
    likely = believed(fit, knobs)
    beside = tuple(step for step in plan if step.label in fit.knobs)
    free = [
        knob for knob in knobs if not any(step == knob or exclude(step, knob, conflicts) for step in plan)
    ]
    found = _likely(likely, beside, free, conflicts, _leans)
    return found if plan or _doubt(likely, found, ()) <= TOGETHER else ()


def opportunity_cost(
    fit: SwitchFit, knobs: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]]
) -> float:
    """Return the log gain that deciding now is expected to lose against knowing every knob exactly.

    A knob that is taken may cost time; one that is not, or gave way to another, may gain more than what is worth a step
    (the expected opportunity cost of a selection; Chick & Inoue 2001, Operations Research 49:732).
    """
    likely = believed(fit, knobs)
    plan = predicted_plan(fit, knobs, conflicts)
    taken = (*plan, *leaning(fit, plan, knobs, conflicts))
    cost = 0.0
    for knob in knobs:
        if knob.label not in fit.knobs:
            continue
        beside = [step for step in taken if step != knob and not exclude(step, knob, conflicts)]
        without = [step for step in taken if step != knob]
        gain, error = likely.gain(_labels([*beside, knob]), _labels(without))
        cost += _expected_excess(-gain if knob in taken else gain - MIN_GAIN, error)
    return cost


def _expected_excess(mean: float, deviation: float) -> float:
    """Return the expectation of what a normal variable is above 0."""
    if deviation <= 0:
        return max(0.0, mean)
    unit = NormalDist()
    return deviation * unit.pdf(mean / deviation) + mean * unit.cdf(mean / deviation)


def believed(fit: SwitchFit, knobs: Sequence[Candidate]) -> SwitchFit:
    """Return what is likely of the knobs, measured and expected.

    What a part of this program's step bounds is expected to gain for a reason; the standard deviation of that is as
    large as itself, so that nothing and twice as much are as likely. Two of them help or hinder one another by no more
    than what either may bring.
    """
    bounded = {
        knob.label: math.log(knob.expected)
        for knob in knobs
        if knob.max_gain is not None and knob.expected > 1
    }
    means = [bounded.get(term[0], 0.0) if len(term) == 1 else 0.0 for term in fit.terms]
    loose = {knob.label: max(UNBOUNDED, math.log(max(1.0, knob.expected))) for knob in knobs}
    deviations = [min({**loose, **bounded}.get(label, UNBOUNDED) for label in term) for term in fit.terms]
    return fit.with_prior(means, deviations)


def _own_gain(fit: SwitchFit, plan: Sequence[Candidate], knob: Candidate) -> float:
    """Return the log gain of a knob beside the plan's others."""
    after = _labels(plan) | {knob.label}
    return fit.gain(after, after - {knob.label})[0]


def _likely(
    fit: SwitchFit,
    beside: Sequence[Candidate],
    knobs: Sequence[Candidate],
    conflicts: Mapping[str, frozenset[str]],
    lack: Lack,
) -> tuple[Candidate, ...]:
    """Return the best state beside some knobs, without what is too small or too doubtful in it."""

    def short(knob: Candidate) -> tuple[float, float]:
        plan = [*beside, *best]
        gain = _own_gain(fit, plan, knob)
        return (math.inf if gain < MIN_GAIN else lack(fit, plan, knob)), -gain

    known = [knob for knob in knobs if knob.label in fit.knobs]
    known = sorted(known, key=lambda knob: -_own_gain(fit, beside, knob))[:MAX_ENUMERATED]
    best = list(_best_state(fit, beside, known, conflicts))
    while best:
        weakest = max(best, key=short)
        if short(weakest)[0] <= 1:
            break
        best.remove(weakest)
    best = [_expected_variant(fit, [*beside, *best], knob, known) for knob in best]
    return tuple(sorted(best, key=lambda knob: -_own_gain(fit, [*beside, *best], knob)))


def _expected_variant(
    fit: SwitchFit, plan: Sequence[Candidate], knob: Candidate, known: Sequence[Candidate]
) -> Candidate:
    """Return another variant of a knob of a plan that more is expected of, unless measuring is sure that it is slower.

    Variants share what is not known of them, such as what part of the step an optimizer is: their order is surer than
    what each of them gains.
    """
    more = [one for one in known if one.name == knob.name and one.expected > knob.expected]
    if not more:
        return knob
    other = max(more, key=lambda one: one.expected)
    others = _labels(plan) - {knob.label}
    gain, error = fit.gain(others | {knob.label}, others | {other.label})
    sure = student_cdf(gain / error, fit.df) >= ORDER if error > 0 else gain > 0
    return knob if sure else other


def _lack(fit: SwitchFit, plan: Sequence[Candidate], knob: Candidate) -> float:
    others = 1 if _own_gain(fit, plan, knob) >= LARGE else len(fit.knobs)
    return _doubt(fit, [knob], plan) * others / DOUBT[knob.numerics]


def _leans(fit: SwitchFit, plan: Sequence[Candidate], knob: Candidate) -> float:
    return _doubt(fit, [knob], plan) / LEANS[knob.numerics]


def _doubt(fit: SwitchFit, knobs: Sequence[Candidate], plan: Sequence[Candidate]) -> float:
    """Return the chance that knobs that bring nothing beside a plan's others look as good."""
    after = _labels(plan) | _labels(knobs)
    gain, error = fit.gain(after, after - _labels(knobs))
    return student_cdf(-gain / error, fit.df) if error > 0 else float(gain <= 0)


def _labels(plan: Sequence[Candidate]) -> set[str]:
    return {one.label for one in plan}


def _best_state(
    fit: SwitchFit,
    beside: Sequence[Candidate],
    knobs: Sequence[Candidate],
    conflicts: Mapping[str, frozenset[str]],
) -> tuple[Candidate, ...]:
    """Return the knobs of the state with the largest gain; of equals, the one with the fewest."""
    states = np.array(sorted(product((False, True), repeat=len(knobs)), key=sum))
    for (at, one), (also, other) in combinations(enumerate(knobs), 2):
        if exclude(one, other, conflicts):
            states = states[~(states[:, at] & states[:, also])]
    columns = {knob.label: states[:, at] for at, knob in enumerate(knobs)}
    on = {**columns, **{step.label: np.ones(len(states), bool) for step in beside}}
    gains = np.zeros(len(states))
    for term, gain in zip(fit.terms, fit.gains, strict=True):
        if set(term) <= on.keys():
            gains += gain * np.logical_and.reduce([on[label] for label in term])
    best = states[int(gains.argmax())]
    return tuple(knob for knob, is_on in zip(knobs, best, strict=True) if is_on)
