"""What a source of the monitors is."""

from __future__ import annotations

from typing import Protocol

from hotloop.machine.monitor.columns import Metric

Sample = dict[Metric, float]
"""What was measured at one moment."""


class Source(Protocol):
    """One family of metrics."""

    def sample(self, now_s: float, /) -> Sample:
        """Return what could be measured at this moment; what could not is left out."""
