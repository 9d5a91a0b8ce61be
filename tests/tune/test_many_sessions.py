"""How often whole sessions are right, where processes differ and blocks are not independent."""

from __future__ import annotations

import pytest

from hotloop.model.tuning import TuneResult

from .sessions import DEFAULT_BUDGET_S, Simulation, names, noisy
from .simulated import Truth, candidates

NUM_SESSIONS = 100
NULLS = [f"null{number}" for number in range(11)]


def _session(truth: Truth, tried: list[str], seed: int) -> TuneResult:
    return Simulation(truth, noisy(seed), seed=seed).run(candidates(*tried))


def test_nothing_is_claimed_where_nothing_helps() -> None:
    results = [_session(Truth(), NULLS, seed) for seed in range(NUM_SESSIONS // 4)]
    claimed = [result for result in results if result.plan.steps]
    assert not claimed
    assert any(trial.decision == "accepted" for result in results for trial in result.trials), (
        "some null must have looked promising, or the confirmation was not tried"
    )


@pytest.mark.slow
def test_five_per_cent_are_found_within_the_default_budget() -> None:
    tried = [*NULLS[:5], "true_gain", *NULLS[5:]]
    results = [
        _session(Truth(factors={"true_gain": 1.05}), tried, 1000 + seed) for seed in range(NUM_SESSIONS)
    ]
    found = [result for result in results if "true_gain" in names(result)]
    assert len(found) >= 0.8 * NUM_SESSIONS
    steps = [step for result in results for step in result.plan.steps if step.name != "true_gain"]
    assert sum(step.proven for step in steps) <= NUM_SESSIONS // 100
    assert len(steps) <= 0.15 * NUM_SESSIONS, "nulls ride along in proven wholes, called so"
    assert max(result.wall_s for result in results) < 1.1 * DEFAULT_BUDGET_S


@pytest.mark.slow
def test_the_interval_holds_the_truth() -> None:
    truth = Truth(factors={"a": 1.5, "b": 1.2})
    speedups = [_session(truth, ["a", "b", *NULLS[:3]], 2000 + seed).plan.speedup for seed in range(40)]
    held = [speedup for speedup in speedups if speedup and speedup.low <= 1.8 <= speedup.high]
    # Both are found nearly always, and of 95% intervals 40 hold the truth at least 35 times (p = 0.014).
    assert len(held) >= 35
