"""Simulated measurements with the faults of real ones: shared by the tests and `benchmarks/verdicts`."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.stats.floor import aa_floor, pair_spread
from hotloop.stats.verdict import Decision, decide

Array = npt.NDArray[np.float64]


BESIDE_SD = 0.4
"""Of blocks beside a busy neighbour: spinning barriers cost a factor now and then."""


class Noise(msgspec.Struct, frozen=True):
    """How a machine spoils the comparison of two processes; sds are of log ratios."""

    pair_sd: float
    """Between pairs of identical processes; up to 2% was seen."""
    block_sd: float
    rho: float
    """Autocorrelation of neighbouring blocks; up to 0.6 was seen."""
    spike_share: float = 0.05
    """Share of blocks that something foreign hit, by 10% on average."""


def random_noise(rng: np.random.Generator, pair_sd: float | None = None) -> Noise:
    """One machine: between pairs 0.5-2%, blocks 0.5-3%, autocorrelation 0-0.6."""
    sd = float(rng.uniform(0.005, 0.02)) if pair_sd is None else pair_sd
    return Noise(sd, float(rng.uniform(0.005, 0.03)), float(rng.uniform(0.0, 0.6)))


def simulated_pair(
    rng: np.random.Generator, noise: Noise, log_ratio: float, num: int | None = None
) -> list[float]:
    """Block log ratios of one fresh pair: 8 to 12 blocks of AR(1) with t(3) shocks, and spikes."""
    num = int(rng.integers(8, 13)) if num is None else num
    shocks = rng.standard_t(3, num + 20) / math.sqrt(3) * math.sqrt(1 - noise.rho**2)
    series = np.zeros(num + 20)
    for index in range(1, num + 20):
        series[index] = noise.rho * series[index - 1] + shocks[index]
    spikes = (rng.random(num) < noise.spike_share) * rng.choice((-1, 1), num) * rng.exponential(0.1, num)
    level = log_ratio + rng.normal(0, noise.pair_sd)
    return [float(value) for value in level + noise.block_sd * series[20:] + spikes]


def simulated_pairs(rng: np.random.Generator, noise: Noise, log_ratio: float, num: int) -> list[list[float]]:
    """Several fresh pairs."""
    return [simulated_pair(rng, noise, log_ratio) for _ in range(num)]


def simulated_session(
    rng: np.random.Generator, noise: Noise, ratio: float, num_aa: int = 3, neighbours: float = 0.0
) -> tuple[Decision, int]:
    """A/A pairs for the floor, then pairs of one candidate until decided: the decision and pairs used.

    Args:
        rng: draws.
        noise: of the machine.
        ratio: the truth.
        num_aa: pairs for the floor.
        neighbours: share of the candidate's pairs that others are busy beside.
    """
    beside = msgspec.structs.replace(noise, block_sd=BESIDE_SD)
    aa = simulated_pairs(rng, noise, 0.0, num_aa)
    floor, spread = aa_floor(aa), pair_spread(aa)
    pairs: list[list[float]] = []
    disturbed: list[int] = []
    while True:
        if neighbours and rng.random() < neighbours:
            disturbed.append(len(pairs))
        now = beside if len(pairs) in disturbed else noise
        pairs.append(simulated_pair(rng, now, math.log(ratio)))
        decision = decide(pairs, floor=floor, prior_sd=spread.sd, prior_df=spread.df, disturbed=disturbed)
        if not decision.more:
            return decision, len(pairs)


def num_verdicts(decisions: Sequence[Decision]) -> dict[str, int]:
    """How often each verdict was given."""
    found: dict[str, int] = {}
    for decision in decisions:
        found[decision.verdict.value] = found.get(decision.verdict.value, 0) + 1
    return found
