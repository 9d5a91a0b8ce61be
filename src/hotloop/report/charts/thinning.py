"""Thinning out a series for drawing, by a rule that is said beside the chart."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

BUCKETS = 700
"""About one for each pixel column of the chart at its widest."""


def extremes(values: npt.NDArray[np.float64], buckets: int = BUCKETS) -> npt.NDArray[np.int64]:
    """Return the places of the smallest and the largest value of each of so many equal stretches, in order.

    No outlier is lost, which averages and plain sampling do. Series that are short enough are kept whole.
    """
    num = len(values)
    if num <= 2 * buckets:
        return np.arange(num)
    edges = np.linspace(0, num, buckets + 1).astype(np.int64)
    kept = []
    for begin, end in itertools.pairwise(edges.tolist()):
        stretch = values[begin:end]
        kept += [begin + int(np.argmin(stretch)), begin + int(np.argmax(stretch))]
    return np.unique(np.array(kept, dtype=np.int64))


def rule(num: int, buckets: int = BUCKETS) -> str:
    """Say what was done; empty: everything is drawn."""
    if num <= 2 * buckets:
        return ""
    return (
        f"Of {num:,} steps the smallest and the largest of each {num / buckets:,.0f} are drawn, so no outlier is lost; "
        "figures are taken from all of them."
    )
