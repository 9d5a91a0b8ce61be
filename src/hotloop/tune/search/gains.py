"""What every candidate is believed to gain: one joint normal distribution of log gains, and how evidence changes it.

A coefficient stands for a candidate, or for a pair of candidates that are known to interact. Whatever was measured (a
knob that was switched, an arm beside another, a plan in fresh processes) is a linear observation of the coefficients:
one conjugate update serves all of them (Gelman et al. 2013, Bayesian Data Analysis, 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.model.optimization import Candidate
from hotloop.tune.design.patterns import exclude

Array = npt.NDArray[np.float64]

PRIOR_SHARE = 0.67
"""Of the logarithm of a predicted gain, what was measured on average (52 predictions,
`benchmarks/results/predictions.jsonl`)."""
OWN_SD = 0.1
"""Standard deviation of a log gain where nothing is expected and nothing bounds it (likewise: 0.05 to 0.1)."""
ALIKE = 0.5
"""Correlation of variants of one optimization: what part of the step they act on is unknown for all of them."""


class Gains(msgspec.Struct, frozen=True):
    """A normal distribution of log gains."""

    terms: tuple[tuple[str, ...], ...]
    """The labels of a coefficient: one, or two that interact."""
    means: Array
    covariance: Array

    def gain(self, after: Collection[str], before: Collection[str] = ()) -> tuple[float, float]:
        """Return the log gain of one state over a second one, and its standard deviation."""
        contrast = self._contrast(after, before)
        variance = float(contrast @ self.covariance @ contrast)
        return float(contrast @ self.means), math.sqrt(max(0.0, variance))

    def observed(
        self, after: Collection[str], before: Collection[str], value: float, variance: float
    ) -> Gains:
        """Return what is believed once the log gain of one state over a second one was measured."""
        row = self._contrast(after, before)
        if not row.any():
            return self
        return self._updated(row[None, :], np.array([value]), np.array([[variance]]))

    def observed_terms(
        self,
        terms: Sequence[tuple[str, ...]],
        values: Sequence[float],
        covariance: Array,
        base: Collection[str],
    ) -> Gains:
        """Return what is believed once several coefficients were measured together, beside what was on all the time."""
        known = [at for at, term in enumerate(terms) if term in self.terms]
        if not known:
            return self
        rows = np.zeros((len(known), len(self.terms)))
        for row, at in enumerate(known):
            if len(terms[at]) == 1:
                rows[row] = self._contrast({*base, *terms[at]}, base)
            else:
                rows[row, self.terms.index(terms[at])] = 1.0
        return self._updated(rows, np.array(values)[known], covariance[np.ix_(known, known)])

    def _contrast(self, after: Collection[str], before: Collection[str]) -> Array:
        on, off = set(after), set(before)
        return np.array([float(set(t) <= on) - float(set(t) <= off) for t in self.terms])

    def _updated(self, rows: Array, values: Array, noise: Array) -> Gains:
        spread = self.covariance @ rows.T
        share = spread @ np.linalg.pinv(rows @ spread + noise)
        means = self.means + share @ (values - rows @ self.means)
        covariance = self.covariance - share @ spread.T
        return Gains(self.terms, means, (covariance + covariance.T) / 2)


def prior(
    candidates: Sequence[Candidate],
    interactions: Mapping[str, frozenset[str]],
    conflicts: Mapping[str, frozenset[str]],
    expected: Mapping[str, float],
) -> Gains:
    """Return what is believed before anything was measured.

    Args:
        candidates: what can be tried.
        interactions: names that may help or hinder one another.
        conflicts: names that cannot be on together.
        expected: log gain by label, where it is not the candidate's own.
    """
    usual = {
        one.label: expected.get(one.label, PRIOR_SHARE * math.log(max(one.expected, 1e-3)))
        for one in candidates
    }
    deviations = {one.label: _deviation(one, usual[one.label]) for one in candidates}
    terms: list[tuple[str, ...]] = [(one.label,) for one in candidates]
    for at, one in enumerate(candidates):
        for other in candidates[at + 1 :]:
            known = other.name in interactions.get(one.name, ()) or one.name in interactions.get(
                other.name, ()
            )
            if known and not exclude(one, other, conflicts):
                terms.append((one.label, other.label))
    spread = np.array([min(deviations[label] for label in term) for term in terms])
    means = np.array([usual[term[0]] if len(term) == 1 else 0.0 for term in terms])
    covariance = np.diag(spread**2)
    for at, one in enumerate(candidates):
        for also in range(at + 1, len(candidates)):
            if candidates[also].name == one.name:
                covariance[at, also] = covariance[also, at] = ALIKE * spread[at] * spread[also]
    return Gains(tuple(terms), means, covariance)


def _deviation(one: Candidate, usual: float) -> float:
    """Nothing and twice as much are about as likely as what is expected; a bound of the step bounds that, too."""
    most = math.log(one.max_gain) if one.max_gain is not None else math.inf
    return max(1e-3, min(math.hypot(OWN_SD, usual), most))
