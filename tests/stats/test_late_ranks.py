"""Who comes last: one rank, or several that are late alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hotloop.model.observation import Phase, PhaseTime, RankObservation, StepTime
from hotloop.stats.late_ranks import LateRanks, late_ranks, named, told


def _ranks(step_s: float, own_s: Sequence[float]) -> LateRanks | None:
    """Ranks that compute for so long, and wait for the rest of the step."""
    step = StepTime(
        num=20, median_s=step_s, low_s=step_s, high_s=step_s, p50_s=step_s, p95_s=step_s, p99_s=step_s,
        mean_s=step_s, samples_per_s=None, tokens_per_s=None, rhythm=(),
    )  # fmt: skip
    return late_ranks(
        [
            RankObservation(
                rank=rank,
                pid=100 + rank,
                role="train",
                step=step,
                phases={
                    Phase.FORWARD: PhaseTime(own, own / step_s),
                    Phase.COMMUNICATION: PhaseTime(step_s - own, 1 - own / step_s),
                },
            )
            for rank, own in enumerate(own_s)
        ]
    )


def test_two_ranks_of_a_slow_stage_are_late_alike() -> None:
    """Job ST of ByteDance-Seed/StragglerAnalysis: without one of the two the other is waited for as long."""
    late = _ranks(2.21, [0.84, 0.84, 0.84, 0.84, 0.85, 0.84, 1.37, 1.38])
    assert late is not None
    assert late.ranks == (7, 6)
    assert late.excess_s == pytest.approx(1.37 - 0.85)
    assert f"{named(late)} last" == "ranks 7 and 6 come last"
    assert told(late).startswith("their forward takes 1.38 s a step, that of the others 840 ms")


def test_one_slow_rank_is_late_by_what_it_works_longer_than_the_slowest_of_the_others() -> None:
    """Job AR: twice as fast without it, as the authors found by simulation."""
    late = _ranks(46.61, [45.29, 19.29, 19.29, 19.24, 20.16, 20.15, 20.03, 19.99])
    assert late is not None
    assert late.ranks == (0,)
    assert 46.61 / (46.61 - late.excess_s) == pytest.approx(46.34 / 23.45, rel=0.12)
    assert f"{named(late)} last" == "rank 0 comes last"


def test_of_ranks_alike_the_slowest_is_hardly_late() -> None:
    """The longest of eight is always above their median."""
    late = _ranks(0.1, [0.080, 0.083, 0.081, 0.087, 0.084, 0.086, 0.082, 0.085])
    assert late is not None
    assert late.excess_s < 0.0015


def test_ranks_that_are_the_same_have_no_excess() -> None:
    late = _ranks(0.1, [0.08, 0.08])
    assert late is not None
    assert late.excess_s == 0.0
    assert _ranks(0.1, [0.08]) is None
