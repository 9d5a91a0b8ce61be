"""Simulated sessions: A/A pairs for the floor, then fresh pairs of a candidate until decided."""

from collections.abc import Iterator

import numpy as np
from tests.stats.simulated import BESIDE_SD, num_verdicts, random_noise, simulated_session

_PAIR_SDS = (None, 0.005, 0.02, 0.03)
_BESIDE = 0.3
"""Of pairs."""
_RATIOS = (1.0, 1.02, 1.05, 1.1, 0.95)


def verdict_table(num: int) -> Iterator[str]:
    """Verdicts in percent, pairs used, and how often the interval held the truth."""
    yield "## Verdicts"
    yield ""
    yield (
        "Blocks: AR(1) with rho 0-0.6, t(3) shocks of sd 0.5-3%, 5% spikes of 10%; 8-12 a pair; at most 8 "
        f"pairs; 3 A/A pairs for the floor. {num} sessions a row; 'mixed' draws the spread "
        f"between pairs from 0.5-2%. 'beside others': of {100 * _BESIDE:.0f}% of its pairs the blocks scatter by "
        f"{100 * BESIDE_SD:.0f}%."
    )
    yield ""
    yield "| between pairs | true ratio | faster | slower | same | inconclusive | pairs | interval holds it |"
    yield "|---|---|---|---|---|---|---|---|"
    for pair_sd in _PAIR_SDS:
        for ratio in _RATIOS:
            yield _verdict_row(num, pair_sd, ratio)
    for ratio in (*_RATIOS, 1.3):
        yield _verdict_row(num, None, ratio, _BESIDE)
    yield ""


def _verdict_row(num: int, pair_sd: float | None, ratio: float, beside: float = 0.0) -> str:
    rng = np.random.default_rng(1)
    sessions = [
        simulated_session(rng, random_noise(rng, pair_sd), ratio, neighbours=beside) for _ in range(num)
    ]
    found = num_verdicts([decision for decision, _ in sessions])
    shares = " | ".join(
        f"{100 * found.get(name, 0) / num:.2f}%" for name in ("faster", "slower", "same", "inconclusive")
    )
    held = sum(d.ratio is not None and d.ratio.low <= ratio <= d.ratio.high for d, _ in sessions)
    pairs = np.mean([used for _, used in sessions])
    spread = "beside others" if beside else "mixed" if pair_sd is None else f"{100 * pair_sd:g}%"
    return f"| {spread} | {ratio:g} | {shares} | {pairs:.1f} | {100 * held / num:.1f}% |"
