"""What a session makes of batch sizes where the truth is known: the smallest on the plateau, proven per sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from hotloop.model.optimization import Candidate, Numerics
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import prior
from hotloop.tune.search.plateau import without_beyond_plateau
from hotloop.tune.search.state import Proof, State
from hotloop.tune.search.status import Known, Status
from hotloop.tune.trials.arm import Arm
from hotloop.tune.trials.arm_processes import ArmProcesses

from ..stats.simulated import Noise
from .sessions import Simulation, names
from .settings import setting
from .simulated import Truth

QUIET = Noise(pair_sd=0.01, block_sd=0.01, rho=0.0, spike_share=0.0)


def sizes() -> list[Candidate]:
    return [
        Candidate(
            name="larger_batch",
            params={"batch_size": 32 * factor, "instead_of": 32},
            numerics=Numerics.SEMANTIC,
            prior=1.1**power,
            samples=float(factor),
            caution="choose the learning rate",
        )
        for power, factor in ((3, 8), (2, 4), (1, 2))
    ]


def test_the_smallest_batch_on_the_plateau_is_proven_although_losses_cannot_be_compared() -> None:
    two, four, eight = (f"larger_batch(batch_size={size}, instead_of=32)" for size in (64, 128, 256))
    truth = Truth(
        factors={two: 1.5, four: 2.2, eight: 2.22},
        departing={frozenset({four}): 0.5, frozenset({eight}): 0.5},
    )
    result = Simulation(truth, QUIET, budget_s=900.0).run(sizes())
    assert names(result) == ["larger_batch"]
    (step,) = result.plan.steps
    assert step.params["batch_size"] == 128
    assert step.caution == "choose the learning rate"
    assert result.plan.parity is not None
    assert result.plan.parity.method == "not comparable"
    assert {one.candidate.samples for one in result.trials} == {2.0, 4.0, 8.0}


def test_where_no_batch_helps_the_plan_is_empty() -> None:
    assert not names(Simulation(Truth(), QUIET, budget_s=900.0).run(sizes()))


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        ({2: 0.5, 4: 0.51, 8: 0.52}, [2]),  # a plateau from the first on
        ({2: 0.2, 4: 0.6, 8: 0.61}, [2, 4]),
        ({2: 0.2, 4: 0.5, 8: 0.9}, [2, 4, 8]),
        ({2: 0.0, 4: 0.0, 8: 0.1}, [2, 4, 8]),  # the others do not help
        ({2: 0.5, 4: 0.52}, [2, 4, 8]),  # one was not measured
    ],
)
def test_larger_batches_than_the_smallest_on_the_plateau_are_left_out(
    seen: dict[int, float], left: list[int]
) -> None:
    known = {int(one.samples): one for one in sizes()}
    gains = prior(sizes(), {}, {}, {})
    for factor, gain in seen.items():
        gains = gains.observed({known[factor].label}, (), gain, 4e-4)
    state = State(
        known=tuple(
            Known(candidate=one, status=Status.OPEN, num_measured=int(factor in seen))
            for factor, one in known.items()
        ),
        speeds=gains,
        evidence=(),
        plan=(),
        proof=Proof(),
    )
    told = without_beyond_plateau(state)
    assert sorted(one.candidate.samples for one in told.known if one.status is Status.OPEN) == left


@dataclass
class _Arm:
    plan: PlanSteps
    asked: list[int] = field(default_factory=list)

    def advance(self, num_steps: int, *, discard: int, timeout_s: float) -> float:
        self.asked.append(num_steps)
        return 0.3 * (num_steps - discard)


def test_the_time_of_a_step_is_that_of_as_many_samples_as_the_programs_own_has() -> None:
    crew = ArmProcesses(
        setting(step_s=0.1), Blocks(num_steps=8, discard=1, warm_steps=3, max_rounds=None), lambda: 100.0
    )
    own, larger = _Arm(()), _Arm((sizes()[1],))
    assert crew.turn(cast("Arm", own)) == pytest.approx(0.3)
    assert crew.turn(cast("Arm", larger)) == pytest.approx(0.3 / 4)
    assert (own.asked, larger.asked) == ([9], [3])
    crew.close()
