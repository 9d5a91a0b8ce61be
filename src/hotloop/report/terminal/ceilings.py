"""Ceilings as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from hotloop.model.ceilings import Ceilings
from hotloop.model.quantities import duration, rate
from hotloop.report.content.ratios import told_gain
from hotloop.report.terminal.layout import facts

BEYOND = 1.05
"""A perfect input that gains so much more than the wait for data says why."""


def ceilings(found: Ceilings, data_share: float = 0.0) -> RenderableType:
    """Return what the step would be if a part of it came for nothing.

    Args:
        found: what was measured.
        data_share: of the step, which waits for data so long.
    """
    return facts(_rows(found, data_share), key_width=8)


def _rows(found: Ceilings, data_share: float) -> Iterator[tuple[str, str]]:
    key = "ceilings"
    if found.perfect_input is not None and found.perfect_input_step_s is not None:
        gain = found.perfect_input
        text = f"{duration(found.perfect_input_step_s)} a step with perfect input"
        interval = told_gain(gain)
        per_s = found.compute_samples_per_s
        yield key, f"{text} ({interval}){f', {rate(per_s)} samples/s' if per_s is not None else ''}"
        key = ""
        if gain.low * (1 - data_share) > BEYOND:
            yield (
                key,
                "that is more than the wait for data: making batches takes cores from the rest of the step",
            )
    if found.perfect_device_step_s is not None:
        yield key, f"{duration(found.perfect_device_step_s)} a step with a perfect device"
        key = ""
    if found.loader_samples_per_s:
        parts = [
            f"{rate(per_s)} with {workers}{' (now)' if workers == found.num_workers else ''}"
            for workers, per_s in sorted(found.loader_samples_per_s.items())
        ]
        yield key, f"the loader alone, samples/s by workers: {', '.join(parts)}"
        key = ""
    if found.transfer_s is not None:
        yield key, f"{duration(found.transfer_s)} to copy one batch to the device"
