"""A summary of step times, with an interval that does not take steps for independent."""

from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np

from hotloop.stats.autocorrelation import effective_num


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Step times in short."""

    num: int
    median_s: float
    low_s: float
    """Lower end of the 95% interval of the median."""
    high_s: float
    p50_s: float
    p95_s: float
    p99_s: float


def summarize(samples_s: Sequence[float], *, confidence: float = 0.95) -> Summary:
    """Median with its interval, and percentiles, of step times in the order they were taken.

    The interval is the order-statistic one at the quantiles 0.5 +- z / (2 sqrt(n_eff)), where n_eff is the
    effective number of the series "above the median or not": by Bahadur's representation that series
    carries the error of a sample median, also for dependent data (Sen 1968, Ann. Math. Statist. 39:1724).

    Raises:
        ValueError: no samples, or one that is not finite.
    """
    data = np.asarray(samples_s, dtype=np.float64)
    if not len(data) or not np.isfinite(data).all():
        raise ValueError(f"a summary needs finite samples, not {len(data)} with {data[~np.isfinite(data)]}")
    median, p95, p99 = (float(value) for value in np.quantile(data, (0.5, 0.95, 0.99)))
    independent = effective_num((data > median).astype(np.float64))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) / (2 * independent**0.5)
    low, high = np.quantile(data, (max(0.0, 0.5 - reach), min(1.0, 0.5 + reach)))
    return Summary(
        num=len(data),
        median_s=median,
        low_s=float(low),
        high_s=float(high),
        p50_s=median,
        p95_s=p95,
        p99_s=p99,
    )
