"""Two groups of runs that did not take turns: how much faster, with an interval that holds what runs differ by anyway.

Runs of the same program differ for as long as they live (see `pairs`), so one run each can never settle a few per
cent, however many steps it took. Runs at different times also meet different neighbours and temperatures, of which no
interval tells: where it can be had, a duet is worth more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

import msgspec

from hotloop.model.ratio import Ratio
from hotloop.stats.log_ratio import ratio_of
from hotloop.stats.pairs import DEFAULT_PRIOR_DF, DEFAULT_PRIOR_SD
from hotloop.stats.student import student_quantile
from hotloop.stats.summary import summarize


class RunEstimate(msgspec.Struct, frozen=True):
    """What one run says of its step time."""

    log_s: float
    variance: float
    """Of `log_s`, from the run's own steps."""


def run_of_steps(samples_s: Sequence[float]) -> RunEstimate:
    """Return what a run's steps say.

    Raises:
        ValueError: there are none, or one is not finite and positive.
    """
    found = summarize(samples_s)
    return run_of_interval(found.median_s, found.low_s, found.high_s)


def run_of_interval(median_s: float, low_s: float, high_s: float) -> RunEstimate:
    """Return what a median with its 95% interval says.

    Raises:
        ValueError: it is not positive.
    """
    if not 0 < median_s < math.inf:
        raise ValueError(f"the time of a step must be positive, not {median_s}")
    reach = math.log(max(high_s, median_s) / max(min(low_s, median_s), 1e-3 * median_s)) / 2
    return RunEstimate(math.log(median_s), (reach / NormalDist().inv_cdf(0.975)) ** 2)


def runs_ratio(
    before: Sequence[RunEstimate], after: Sequence[RunEstimate], *, confidence: float = 0.95
) -> Ratio:
    """Return the speed ratio (above 1: `after` is faster) with its interval.

    The variance of a run is pooled from the runs seen and what identical runs were seen to differ by, as pairs' is.

    Raises:
        ValueError: a group is empty.
    """
    if not before or not after:
        raise ValueError("both groups need at least one run")
    center = fmean(run.log_s for run in before) - fmean(run.log_s for run in after)
    df = DEFAULT_PRIOR_DF + len(before) + len(after) - 2
    within = fmean(run.variance for run in (*before, *after))
    squares = _squares(before) + _squares(after)
    # A pair's difference holds the variance of two runs.
    known = DEFAULT_PRIOR_SD**2 / 2 + within
    variance = max(within, (DEFAULT_PRIOR_DF * known + squares) / df)
    half = student_quantile((1 + confidence) / 2, df) * math.sqrt(
        variance * (1 / len(before) + 1 / len(after))
    )
    return ratio_of(center, half)


def _squares(runs: Sequence[RunEstimate]) -> float:
    center = fmean(run.log_s for run in runs)
    return math.fsum((run.log_s - center) ** 2 for run in runs)
