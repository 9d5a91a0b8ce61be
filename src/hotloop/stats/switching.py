"""Effects of several knobs that were switched together in one process: regression on log step time.

Each hold of a pattern gives one number, the log of its typical step. A linear model explains it by the knobs that were
on, by the pairs of them that are known to interact, and by the machine's own speed, which wanders from hold to hold: a
machine that others use becomes 1.7 times as slow within half a minute. How far it wanders is estimated from the holds
themselves (restricted maximum likelihood; Patterson & Thompson 1971, Biometrika 58:545). Weights are Huber's, so that a
hold that something foreign hit does not decide; errors respect what is left of the likeness of neighbouring holds
(Newey & West 1987, Econometrica 55:703).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.model.ratio import Ratio
from hotloop.stats.log_ratio import ratio_of
from hotloop.stats.robust import mad_sd
from hotloop.stats.student import student_quantile

Array = npt.NDArray[np.float64]

WANDERING = (0.0, *(float(share) for share in np.geomspace(0.003, 30.0, 13)))
"""Variances of the machine's change of speed from one hold to the next that are tried, relative to that of a hold."""
SPARE_DF = 4
"""Holds beyond the number of coefficients below which no error can be given."""
_LEAST_VARIANCE = 1e-10
"""Of a log gain: holds that are alike to the last bit are not known any better."""
_HUBER = 1.345
"""95% efficient on normal data (Huber 1981)."""
_MAX_ROUNDS = 30


class SwitchedHold(msgspec.Struct, frozen=True):
    """One pattern held for some steps."""

    on: frozenset[str]
    log_s: float
    """Log of its typical step time."""


class SwitchFit(msgspec.Struct, frozen=True):
    """What the holds say of every knob."""

    terms: tuple[tuple[str, ...], ...]
    """A knob, or a pair of knobs, for each coefficient."""
    gains: tuple[float, ...]
    """Log speed ratio of each term; above 0 is faster."""
    covariance: tuple[tuple[float, ...], ...]
    df: float
    """Holds without coefficients and the wandering, all of which were estimated."""

    @property
    def knobs(self) -> tuple[str, ...]:
        """The knobs that were switched."""
        return tuple(term[0] for term in self.terms if len(term) == 1)

    def gain(self, after: Collection[str], before: Collection[str] = ()) -> tuple[float, float]:
        """Return the log speed ratio between two states, and its standard error."""
        contrast = np.array([float(set(t) <= set(after)) - float(set(t) <= set(before)) for t in self.terms])
        variance = float(contrast @ np.array(self.covariance) @ contrast) if self.terms else 0.0
        return float(contrast @ np.array(self.gains)), math.sqrt(max(0.0, variance))

    def joined(self, other: SwitchFit) -> SwitchFit:
        """Return the estimate of two processes together, each term weighted by its precision.

        The fixed-effects combination of independent estimates (Cochran 1954, Biometrics 10:101), for several terms.
        """
        terms = (*self.terms, *(term for term in other.terms if term not in self.terms))
        precision, weighted = np.zeros((len(terms), len(terms))), np.zeros(len(terms))
        for fit in (self, other):
            at = [terms.index(term) for term in fit.terms]
            own = np.linalg.inv(np.array(fit.covariance) + _LEAST_VARIANCE * np.eye(len(at)))
            precision[np.ix_(at, at)] += own
            weighted[at] += own @ np.array(fit.gains)
        covariance = np.linalg.inv(precision)
        return SwitchFit(
            terms=terms,
            gains=tuple(float(gain) for gain in covariance @ weighted),
            covariance=tuple(tuple(float(value) for value in row) for row in covariance),
            df=self.df + other.df,
        )

    def with_terms(self, other: SwitchFit, knobs: Collection[str]) -> SwitchFit:
        """Return this fit with the estimates of some knobs from a second fit of the same holds.

        Both kinds are taken for independent of one another, as knobs of a balanced design are.

        Args:
            other: a term that is not in it stays as it is.
            knobs: all of a term are among these, or it stays as it is.
        """
        here = [at for at, term in enumerate(self.terms) if set(term) <= set(knobs) and term in other.terms]
        there = [other.terms.index(self.terms[at]) for at in here]
        gains, covariance = np.array(self.gains), np.array(self.covariance)
        covariance[here, :] = covariance[:, here] = 0.0
        gains[here] = np.array(other.gains)[there]
        covariance[np.ix_(here, here)] = np.array(other.covariance)[np.ix_(there, there)]
        return self._with(gains, covariance)

    def scaled(self, share: float, knobs: Collection[str]) -> SwitchFit:
        """Return what is left of some knobs' gains in a whole of which they shorten a share.

        Args:
            share: of the time, above 0.
            knobs: all of a term are among these, or it stays as it is.
        """
        by = np.array([share if set(term) <= set(knobs) else 1.0 for term in self.terms])
        return self._with(by * np.array(self.gains), by[:, None] * np.array(self.covariance) * by[None, :])

    def _with(self, gains: Array, covariance: Array) -> SwitchFit:
        return msgspec.structs.replace(
            self,
            gains=tuple(float(gain) for gain in gains),
            covariance=tuple(tuple(float(value) for value in row) for row in covariance),
        )

    def ratio(
        self,
        after: Collection[str],
        before: Collection[str] = (),
        confidence: float = 0.95,
        *,
        process_sd: float = 0.0,
    ) -> Ratio:
        """Return the speed ratio between two states with its interval.

        Args:
            after: knobs that are on.
            before: knobs that are on in the state it is compared with.
            confidence: of the interval.
            process_sd: of the log gain between processes; 0: only this process is meant.
        """
        gain, error = self.gain(after, before)
        half = student_quantile((1 + confidence) / 2, self.df) * math.hypot(error, process_sd)
        return ratio_of(gain, half)


def fit_switches(
    holds: Sequence[SwitchedHold], knobs: Sequence[str], pairs: Sequence[tuple[str, str]] = ()
) -> SwitchFit | None:
    """Return the effects of the knobs, and of the pairs as far as the holds can tell them; None: too few holds.

    Args:
        holds: in the order in which they were measured.
        knobs: that were switched; one that never was, or always, is left out.
        pairs: that may help or hinder one another.
    """
    usable = [hold for hold in holds if math.isfinite(hold.log_s)]
    terms: list[tuple[str, ...]] = [
        (knob,) for knob in knobs if 1 < sum(knob in hold.on for hold in usable) < len(usable) - 1
    ]
    seen = {term[0] for term in terms}
    terms += [pair for pair in pairs if set(pair) <= seen]
    while terms:
        design = _design(usable, terms)
        enough = len(usable) >= design.shape[1] + SPARE_DF
        if enough and np.linalg.matrix_rank(design) == design.shape[1]:
            logs = np.array([hold.log_s for hold in usable])
            steady = _steadied(design, logs)
            return _fit(steady @ design, steady @ logs, terms)
        if len(terms[-1]) == 1:
            return None
        terms = terms[:-1]
    return None


def _design(holds: Sequence[SwitchedHold], terms: Sequence[tuple[str, ...]]) -> Array:
    on = np.array([[set(term) <= hold.on for term in terms] for hold in holds], dtype=np.float64)
    return np.hstack((on, np.ones((len(holds), 1))))


def _steadied(design: Array, logs: Array) -> Array:
    """Return what takes the wandering that is likeliest out of holds: the root of their inverse covariance."""
    variances, vectors = random_walk(len(logs))
    turned, target = vectors.T @ design, vectors.T @ logs
    scales = [1.0 / np.sqrt(1.0 + share * np.maximum(variances, 0.0)) for share in WANDERING]
    best = max(scales, key=lambda scale: _likelihood(turned * scale[:, None], target * scale, scale))
    return np.asarray((vectors * best) @ vectors.T, dtype=np.float64)


def random_walk(num: int) -> tuple[Array, Array]:
    """Return the variances and directions of the principal components of a random walk that begins at 0.

    Of its covariance `min(i, j)` both are known: `1 / (4 sin^2(a / 2))` and `sin(a i)` with odd multiples `a` of
    `pi / (2 num - 1)`. The beginning itself does not vary.

    Args:
        num: places, the first included, at least two.
    """
    angles = np.pi * np.arange(1, 2 * num - 1, 2) / (2 * num - 1)
    vectors = np.zeros((num, num))
    vectors[0, 0] = 1.0
    vectors[1:, 1:] = 2 / math.sqrt(2 * num - 1) * np.sin(np.outer(np.arange(1, num), angles))
    return np.concatenate(([0.0], 0.25 / np.sin(angles / 2) ** 2)), vectors


def _likelihood(white: Array, target: Array, scale: Array) -> float:
    """Return the restricted log likelihood, but for a constant."""
    residuals = target - white @ np.linalg.lstsq(white, target, rcond=None)[0]
    df = white.shape[0] - white.shape[1]
    spread = df * math.log(max(float(residuals @ residuals) / df, 1e-300))
    known = float(np.linalg.slogdet(white.T @ white)[1])
    return float(np.log(scale).sum() - 0.5 * (spread + known))


def _fit(design: Array, logs: Array, terms: Sequence[tuple[str, ...]]) -> SwitchFit:
    weights: Array = np.ones(len(logs))
    beta: Array = np.zeros(design.shape[1])
    residuals: Array = logs
    scale = 1.0
    for _ in range(_MAX_ROUNDS):
        root = np.sqrt(weights)[:, None]
        solved = np.linalg.lstsq(design * root, logs * root[:, 0], rcond=None)[0]
        found = np.asarray(solved, dtype=np.float64)
        residuals = logs - design @ found
        settled = np.allclose(found, beta, atol=1e-6)
        beta[:], scale = found, max(mad_sd(residuals), 1e-9)
        if settled:
            break
        weights[:] = np.clip(_HUBER * scale / np.maximum(np.abs(residuals), 1e-12), 0.0, 1.0)
    tame = np.clip(residuals, -_HUBER * scale, _HUBER * scale)
    covariance = _newey_west(design, tame, residuals, scale)
    num = len(terms)
    return SwitchFit(
        terms=tuple(terms),
        gains=tuple(float(-value) for value in beta[:num]),
        covariance=tuple(tuple(float(v) for v in row[:num]) for row in covariance[:num]),
        df=float(len(logs) - design.shape[1] - 1),
    )


def _newey_west(design: Array, tame: Array, residuals: Array, scale: float) -> Array:
    """The sandwich of a Huber fit, Bartlett weights over the lags; never below what independence says."""
    num, width = design.shape
    slope = max(0.5, float(np.mean(np.abs(residuals) <= _HUBER * scale)))
    bread = np.linalg.inv(design.T @ design) / slope
    scores = design * tame[:, None]
    plain = design.T @ design * float(tame @ tame) / num
    meat = scores.T @ scores
    lags = int(4 * (num / 100) ** (2 / 9))
    for lag in range(1, min(lags, num - 1) + 1):
        cross = scores[lag:].T @ scores[:-lag]
        meat = meat + (1 - lag / (lags + 1)) * (cross + cross.T)
    small = num / max(1, num - width - 1)
    robust, independent = small * bread @ meat @ bread, small * bread @ plain @ bread
    # Newey-West is biased low in short series: where it says less than independence does, that is taken.
    ratio = np.sqrt(np.maximum(1.0, np.diag(independent) / np.maximum(np.diag(robust), 1e-300)))
    widened: Array = robust * np.outer(ratio, ratio)
    return widened
