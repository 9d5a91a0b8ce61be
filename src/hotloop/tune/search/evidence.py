"""What was measured, and what is believed by then."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from hotloop.stats.switching import SwitchFit
from hotloop.tune.goals.gains import Gains

SWITCHED_SD = 0.01
"""What a knob that is switched shows of its gain is off by so much: caches fill, memory stays allocated."""
PASSIVE_SD = 0.2
"""What a knob shows while all threads wait passively is off by so much where they do not: one thread was 1.05 for 0.7
on a small GPT."""
MOST_SHIFT = math.log(5.0)
PEAK_SD = 0.01
"""Of the log ratio of two peaks: equal processes give the same one (counted tensors); savings of two changes do not add
up exactly."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of the program beside one another, in processes of their own."""

    after: frozenset[str]
    before: frozenset[str]
    value: float
    """Log gain."""
    variance: float
    memory: float | None = None
    """Log ratio of the peaks; None: not counted, or not in the same way."""

    @property
    def candidate(self) -> str | None:
        """The label that only the second state has; None: there are several."""
        added = self.after - self.before
        return next(iter(added)) if len(added) == 1 else None


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """Knobs that were switched together in one process."""

    fit: SwitchFit
    base: frozenset[str]
    passive: bool = False
    """All threads waited passively."""


Evidence = Compared | Screened


def believed_peaks(prior: Gains, evidence: Sequence[Evidence]) -> Gains:
    """Return the log gains of memory after all evidence: peaks repeat, so what was seen is nearly known."""
    gains = prior
    for one in evidence:
        if isinstance(one, Compared) and one.memory is not None:
            gains = gains.observed(one.after, one.before, one.memory, PEAK_SD**2)
    return gains


def believed(prior: Gains, evidence: Sequence[Evidence], *, passive: bool = False) -> Gains:
    """Return what is believed after all evidence.

    Args:
        prior: before it.
        evidence: in the order in which it was measured.
        passive: whether threads wait passively now, too; what was seen while they did says less otherwise.

    What was measured beside a slower program counts for less once the same candidate was measured beside a faster one
    (`shift`): the first pass over the evidence tells how fast the program was, the second one weighs.
    """
    first = _folded(prior, evidence, None, passive=passive)
    return _folded(prior, evidence, first, passive=passive)


def measured_at(gains: Gains, evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return the log gain of the program beside which each candidate was measured last, by label."""
    found: dict[str, float] = {}
    for one in evidence:
        for label in _measures(one):
            found[label] = _speed(gains, one, label)
    return found


def shifted(mean: float, deviation: float, shift: float) -> float:
    """Return how unsure a gain is once the program beside it is faster by `shift` than where it was measured.

    A step that is a tenth of what it was makes ten times as much of what is left of it: a gain of a part that the rest
    does not touch grows in proportion, and one of the same part is gone (Amdahl 1967).

    Args:
        mean: the log gain, as it was measured.
        deviation: its standard deviation.
        shift: log ratio of the two speeds.
    """
    times = math.exp(min(abs(shift), MOST_SHIFT))
    return math.hypot(deviation * times, mean * (times - 1.0))


def _folded(prior: Gains, evidence: Sequence[Evidence], known: Gains | None, *, passive: bool) -> Gains:
    gains = prior
    latest = measured_at(known, evidence) if known is not None else {}
    for one in evidence:
        gains = _with(gains, one, known, latest, passive=passive)
    return gains


def _with(
    gains: Gains, one: Evidence, known: Gains | None, latest: dict[str, float], *, passive: bool
) -> Gains:
    if isinstance(one, Compared):
        more = _doubt(one, one.candidate, known, latest) if one.candidate is not None else 0.0
        return gains.observed(one.after, one.before, one.value, one.variance + more)
    unlike = PASSIVE_SD**2 if one.passive and not passive else 0.0
    doubts = [
        SWITCHED_SD**2 + unlike + sum(_doubt(one, label, known, latest) for label in term)
        for term in one.fit.terms
    ]
    covariance = np.array(one.fit.covariance) + np.diag(doubts)
    return gains.observed_terms(one.fit.terms, one.fit.gains, covariance, one.base)


def _doubt(one: Evidence, label: str, known: Gains | None, latest: dict[str, float]) -> float:
    """Return the variance that an observation has because its candidate was measured elsewhere since."""
    if known is None or label not in latest:
        return 0.0
    shift = latest[label] - _speed(known, one, label)
    if abs(shift) < 1e-6:
        return 0.0
    mean, deviation = known.gain({label})
    return max(0.0, shifted(mean, deviation, shift) ** 2 - deviation**2)


def _measures(one: Evidence) -> Collection[str]:
    if isinstance(one, Screened):
        return one.fit.knobs
    return () if one.candidate is None else (one.candidate,)


def _speed(gains: Gains, one: Evidence, label: str) -> float:
    """Return the log gain of the program beside which a candidate was measured; other knobs were on in half of it."""
    if isinstance(one, Compared):
        return gains.gain(one.before)[0]
    others = [gains.gain({knob})[0] for knob in one.fit.knobs if knob != label]
    return gains.gain(one.base)[0] + 0.5 * sum(others)
