"""Two sessions of different times: what a step takes, and of how many samples."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.model.observation import Observation
from hotloop.tune.compare.compare import compare_observations

from .simulated import observation


def _seen(step_s: float, batch: int) -> Observation:
    seen = observation()
    assert seen.step is not None
    step = msgspec.structs.replace(
        seen.step,
        median_s=step_s,
        mean_s=step_s,
        low_s=0.99 * step_s,
        high_s=1.01 * step_s,
        samples_per_s=batch / step_s,
    )
    return msgspec.structs.replace(seen, step=step)


@pytest.mark.parametrize(
    ("step_s", "batch", "verdict", "per_sample"),
    [
        (0.010, 32, "slower", False),
        (0.010, 31, "slower", False),
        (0.010, 128, "faster", True),
        (0.004, 16, "slower", True),
    ],
)
def test_batches_of_another_size_are_compared_per_sample(
    step_s: float, batch: int, verdict: str, per_sample: bool
) -> None:
    """Against 5 ms of 32 samples; one less is the last batch of an epoch."""
    found = compare_observations(_seen(0.005, 32), _seen(step_s, batch), ("first", "second"))
    assert found.verdict == verdict
    assert found.reason.startswith("per sample, as a step has 32 of them and ") == per_sample
