"""Whether a program got slower by more than a margin: yes only where it is proven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from hotloop.model.ratio import Ratio
from hotloop.stats.runs import run_of_steps, runs_ratio

CONFIDENCE = 0.98
"""Two-sided, so that one of a hundred gates at the margin's very edge fails by chance; away from it none does."""


def slowdown(before: Sequence[Sequence[float]], now: Sequence[Sequence[float]]) -> Ratio:
    """Return time now over time then with its interval.

    Args:
        before: the steps of every run of the baseline, in seconds.
        now: likewise, of the program as it is.

    Raises:
        ValueError: there are no runs or no steps.
    """
    return runs_ratio(
        [run_of_steps(run) for run in now], [run_of_steps(run) for run in before], confidence=CONFIDENCE
    )


def is_proven_slower(found: Ratio, margin: float) -> bool:
    """Whether the whole interval lies beyond the margin."""
    return found.low > 1 + margin


def is_settled(found: Ratio, margin: float) -> bool:
    """Whether the interval lies on one side of the margin."""
    return is_proven_slower(found, margin) or found.high < 1 + margin


def typical_s(runs: Sequence[Sequence[float]]) -> float:
    """Return the geometric mean of the runs' medians; NaN where there is none.

    Two of them divided are the slowdown: of medians of medians a step that took 892 us and takes 929 was "1.48 times as
    long".
    """
    return math.exp(fmean(math.log(median(run)) for run in runs)) if runs else math.nan
