"""What the monitors saw, one numpy column a metric."""

import msgspec
import numpy as np
from numpy.typing import NDArray

_FIRST_CAPACITY = 256
"""About four minutes at one sample a second; capacity doubles when it is used up."""


class Metric(msgspec.Struct, frozen=True):
    """A measured quantity, its unit at the end of its name: `gpu_power_w` of gpu 0."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the name as Prometheus writes it."""
        inside = ",".join(f'{key}="{_escape(value)}"' for key, value in self.labels)
        return f"{self.name}{{{inside}}}" if inside else self.name


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A column in five numbers."""

    num: int
    """Samples in which it was measured."""
    median: float
    low: float
    high: float
    last: float


class Columns:
    """Samples in the order they were taken; NaN where a metric was not measured in one of them."""

    def __init__(self) -> None:
        self._num = 0
        self._times = np.empty(_FIRST_CAPACITY)
        self._values: dict[Metric, NDArray[np.float64]] = {}

    def append(self, time_s: float, sample: dict[Metric, float]) -> None:
        """Add one sample; a metric seen for the first time gets a column of NaN up to here."""
        if self._num == len(self._times):
            self._grow()
        self._times[self._num] = time_s
        for metric in sample.keys() - self._values.keys():
            self._values[metric] = np.full(len(self._times), np.nan)
        for metric, value in sample.items():
            self._values[metric][self._num] = value
        self._num += 1

    @property
    def times_s(self) -> NDArray[np.float64]:
        """When the samples were taken, on the monitor's clock."""
        return np.array(self._times[: self._num])

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What was measured at least once."""
        return tuple(self._values)

    def column(self, metric: Metric) -> NDArray[np.float64] | None:
        """Return one metric over all samples, None where it was never measured."""
        values = self._values.get(metric)
        return None if values is None else np.array(values[: self._num])

    def spread(self, metric: Metric, start_s: float = -np.inf, end_s: float = np.inf) -> Spread | None:
        """Return one metric between two times, None where it was not measured then."""
        column = self.column(metric)
        if column is None:
            return None
        seen = column[(self.times_s >= start_s) & (self.times_s <= end_s) & ~np.isnan(column)]
        if not len(seen):
            return None
        return Spread(
            num=len(seen),
            median=float(np.median(seen)),
            low=float(seen.min()),
            high=float(seen.max()),
            last=float(seen[-1]),
        )

    def last(self) -> dict[Metric, float]:
        """Return the newest sample, without what was not measured in it."""
        if not self._num:
            return {}
        newest = {metric: float(values[self._num - 1]) for metric, values in self._values.items()}
        return {metric: value for metric, value in newest.items() if not np.isnan(value)}

    def _grow(self) -> None:
        self._times = np.resize(self._times, 2 * len(self._times))
        for metric, values in self._values.items():
            self._values[metric] = np.concatenate([values, np.full(len(values), np.nan)])


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
