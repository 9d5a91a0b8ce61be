"""What happens where one epoch ends and the next begins."""

from __future__ import annotations

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost, between_steps, measured_step
from hotloop.model.observation import Observation
from hotloop.model.program import LoaderFacts


def boundary_cost(observation: Observation, loader: LoaderFacts) -> Cost:
    """Return what starting the loader anew costs, spread over the steps.

    It is the start itself, and, where nothing else happens between steps, what the first step after it takes more than
    a usual one: the wait for workers that come up and for those that end.

    Raises:
        Abstain: no second epoch was seen.
    """
    if observation.epoch_steps is None:
        raise Abstain("a second epoch (measure longer: --seconds, --full)")
    spent = observation.run.parts.get("epoch_boundary_s", 0.0)
    if waits_for_workers(observation, loader):
        usual = (loader.num_iterators - 1) * measured_step(observation).median_s
        spent += max(0.0, observation.run.parts.get("irregular_step_s", 0.0) - usual)
    return between_steps(observation, spent)


def waits_for_workers(observation: Observation, loader: LoaderFacts) -> bool:
    """Whether what lies between steps and has no name is the wait for workers: nothing else is seen to happen there."""
    parts = observation.run.parts
    return loader.num_workers > 0 and not parts.get("evaluation_s") and not parts.get("checkpoint_s")
