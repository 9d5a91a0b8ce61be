"""Effects of several knobs that were switched together in one process: regression on log step time.

Each hold of a pattern gives one number, the log of its typical step. A linear model with an intercept for each stretch
of time explains it by the knobs that were on and by the pairs of them that are known to interact. Weights are Huber's,
so that a hold that something foreign hit does not decide; errors respect that neighbouring holds are alike (Newey &
West 1987, Econometrica 55:703).
"""

import math
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.model.ratio import Ratio
from hotloop.stats.robust import mad_sd
from hotloop.stats.student import student_quantile

Array = npt.NDArray[np.float64]

STRETCH = 12
"""Holds with an intercept of their own: drift over tens of seconds is taken out, and a design of 4 to 16 patterns
stays nearly balanced within each."""
SPARE_DF = 4
"""Holds beyond the number of coefficients below which no error can be given."""
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

    @property
    def knobs(self) -> tuple[str, ...]:
        """The knobs that were switched."""
        return tuple(term[0] for term in self.terms if len(term) == 1)

    def gain(self, after: Collection[str], before: Collection[str] = ()) -> tuple[float, float]:
        """Return the log speed ratio between two states, and its standard error."""
        contrast = np.array([float(set(t) <= set(after)) - float(set(t) <= set(before)) for t in self.terms])
        variance = float(contrast @ np.array(self.covariance) @ contrast) if self.terms else 0.0
        return float(contrast @ np.array(self.gains)), math.sqrt(max(0.0, variance))

    def ratio(self, after: Collection[str], before: Collection[str] = (), confidence: float = 0.95) -> Ratio:
        """Return the speed ratio between two states with its interval."""
        gain, error = self.gain(after, before)
        half = student_quantile((1 + confidence) / 2, self.df) * error
        return Ratio(math.exp(gain), math.exp(gain - half), math.exp(gain + half))


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
            return _fit(design, np.array([hold.log_s for hold in usable]), terms)
        if len(terms[-1]) == 1:
            return None
        terms = terms[:-1]
    return None


def _design(holds: Sequence[SwitchedHold], terms: Sequence[tuple[str, ...]]) -> Array:
    on = np.array([[set(term) <= hold.on for term in terms] for hold in holds], dtype=np.float64)
    num = max(1, len(holds) // STRETCH)
    stretch = np.minimum(np.arange(len(holds)) // STRETCH, num - 1)
    return np.hstack((on, np.eye(num)[stretch]))


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
        df=float(len(logs) - design.shape[1]),
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
    small = num / max(1, num - width)
    robust, independent = small * bread @ meat @ bread, small * bread @ plain @ bread
    # Newey-West is biased low in short series: where it says less than independence does, that is taken.
    ratio = np.sqrt(np.maximum(1.0, np.diag(independent) / np.maximum(np.diag(robust), 1e-300)))
    widened: Array = robust * np.outer(ratio, ratio)
    return widened
