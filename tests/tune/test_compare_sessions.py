"""Two sessions of different times: what a step takes, and of how many samples."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.model.observation import Observation
from hotloop.model.program import LoaderFacts
from hotloop.model.ratio import Ratio
from hotloop.stats.verdict import Decision, Verdict
from hotloop.tune.compare import compare
from hotloop.tune.compare.compare import compare_observations
from hotloop.tune.compare.pairs import PairRecord
from hotloop.tune.compare.program import Program

from .simulated import observation


def _seen(step_s: float, batch: int | None, tokens: int | None = None) -> Observation:
    seen = observation()
    assert seen.step is not None
    step = msgspec.structs.replace(
        seen.step,
        median_s=step_s,
        mean_s=step_s,
        low_s=0.99 * step_s,
        high_s=1.01 * step_s,
        tokens_per_s=tokens / step_s if tokens else None,
    )
    loader = LoaderFacts(
        num_workers=0,
        batch_size=batch,
        pin_memory=False,
        persistent_workers=False,
        prefetch_factor=None,
        dataset="Rows",
        dataset_len=100,
        used_in_step=True,
    )
    program = msgspec.structs.replace(seen.program, loaders=(loader,))
    return msgspec.structs.replace(seen, step=step, program=program)


@pytest.mark.parametrize(
    ("step_s", "batch", "verdict", "per"),
    [
        (0.010, 32, "slower", "step"),
        (0.010, None, "slower", "step"),
        (0.010, 128, "faster", "sample"),
        (0.004, 16, "slower", "sample"),
    ],
)
def test_batches_of_another_size_are_compared_per_sample(
    step_s: float, batch: int | None, verdict: str, per: str
) -> None:
    """Against 5 ms of 32 samples."""
    found = compare_observations(_seen(0.005, 32), _seen(step_s, batch), ("first", "second"))
    assert (found.verdict, found.per) == (verdict, per)
    assert found.reason.startswith("per sample, as a step has 32 of them and ") == (per == "sample")


def test_tokens_count_where_both_have_them() -> None:
    """Twice the sequences of half the length are as much work; a step that does more with one batch is slower."""
    first = _seen(0.010, 12, 12 * 1024)
    halved = compare_observations(first, _seen(0.010, 24, 24 * 512), ("first", "second"))
    assert (halved.per, halved.scale) == ("step", 1.0)
    twice = compare_observations(first, _seen(0.020, 12, 24 * 1024), ("first", "second"))
    assert (twice.per, twice.verdict) == ("step", "slower")
    more = compare_observations(first, _seen(0.010, 24, 24 * 1024), ("first", "second"))
    assert (more.per, more.verdict) == ("token", "faster")
    assert more.reason.startswith("per token, as a step has 12,288 of them and 24,576: 2.000")


@pytest.mark.parametrize(
    ("slower", "disturbed", "verdict"),
    [(1.5, 3, "faster"), (20.0, 3, "inconclusive"), (20.0, 1, "faster"), (20.0, 0, "faster")],
)
def test_what_neighbours_have_made_of_a_program_is_no_verdict(
    slower: float, disturbed: int, verdict: str
) -> None:
    """Threads that wait at barriers for one without a core make steps many times as long."""
    step_s = 0.005
    records = [
        PairRecord(
            rounds=((slower * step_s, slower * step_s / 3),) * 4,
            phases=({}, {}),
            peak_bytes=(None, None),
            foreign_share=0.48 if number < disturbed else None,
        )
        for number in range(3)
    ]
    decided = Decision(Verdict.FASTER, Ratio(3.0, 2.5, 3.5), False, "3.000 [2.500, 3.500]")
    both = [
        Program(name=name, words=(), argv=(), folder=Path(), observation=_seen(step_s, 32)) for name in "ab"
    ]
    found = compare.compare_programs(
        both[0],
        both[1],
        floor=0.0,
        limit_s=60.0,
        progress=print,
        pairs=lambda *_, **__: (records, decided),
    )
    assert found.verdict == verdict
    assert ("the machine was disturbed: a took 100 ms a step" in found.reason) == (verdict == "inconclusive")
