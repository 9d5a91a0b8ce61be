"""The bottleneck is one sentence with its number."""

from __future__ import annotations

import msgspec

from hotloop.diagnose.check.bottleneck import bottleneck
from hotloop.model.observation import Observation, PhaseTime

from .observations import FINE, with_loader, with_parts, with_phases


def _sentence(observation: Observation) -> str:
    found = bottleneck(observation)
    assert found is not None
    return found.sentence


def test_input_bound_gives_both_rates() -> None:
    assert _sentence(with_phases(data=0.6, forward=0.2, backward=0.2)) == (
        "input-bound: 60% of the step waits for data; compute alone would run at 800 samples/s, the loader alone at "
        "533; without workers they take turns"
    )


def test_with_workers_the_loader_sets_the_pace() -> None:
    observation = with_loader(with_phases(data=0.6, forward=0.2, backward=0.2), num_workers=2)
    assert _sentence(observation).endswith("the loader alone at 320")


def test_compute_bound_names_the_wait_for_data() -> None:
    assert (
        _sentence(FINE) == "compute-bound: 95% of the step is forward and backward; waiting for data takes 1%"
    )


def test_host_bound() -> None:
    assert _sentence(with_phases(other=0.6, forward=0.2, backward=0.1)).startswith(
        "host-bound: 60% of the step"
    )


def test_rollouts_are_no_evaluation() -> None:
    assert _sentence(with_parts(rollout_s=20.0)).startswith("rollout-bound: 69% of the loop is rollouts")


def test_a_part_between_steps_that_is_longer_than_all_steps() -> None:
    assert _sentence(with_parts(evaluation_s=20.0)).startswith(
        "evaluation-bound: 69% of the loop is evaluation"
    )


def test_forwards_without_gradients_in_every_step_are_computing_and_are_said() -> None:
    trunk = msgspec.structs.replace(
        with_phases(forward=0.96, backward=0.02, data=0.01), evaluated=PhaseTime(0.09, 0.9)
    )
    assert _sentence(trunk).startswith(
        "compute-bound: 98% of the step is forward and backward, 90% in forwards without gradients; "
    )
