"""How step times are distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MAX_BINS = 60
MIN_NUM = 20
"""A histogram of fewer steps shows chance."""


def histogram(durations_s: npt.NDArray[np.float64]) -> dict[str, Any] | None:
    """Return bins and percentiles in milliseconds; None: too few steps.

    What lies beyond the 99th percentile is counted in `beyond`: one step of a minute would squeeze all others.
    """
    if len(durations_s) < MIN_NUM:
        return None
    ms = durations_s * 1e3
    edge = float(np.quantile(ms, 0.99))
    shown = ms[ms <= edge]
    counts, edges = np.histogram(
        shown, bins=min(MAX_BINS, max(8, len(np.histogram_bin_edges(shown, "fd")) - 1))
    )
    p50, p95, p99 = (float(value) for value in np.quantile(ms, (0.5, 0.95, 0.99)))
    return {
        "edges": [round(float(one), 4) for one in edges],
        "counts": [int(one) for one in counts],
        "beyond": int((ms > edge).sum()),
        "p50": p50,
        "p95": p95,
        "p99": p99,
    }
