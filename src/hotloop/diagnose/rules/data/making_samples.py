"""What making a sample is made of, and what a part of it costs the step."""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.choosing_samples import making_cost
from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.price.facts import step_loader
from hotloop.model.deep import Loading, LoadingPart
from hotloop.model.observation import Observation, Phase
from hotloop.model.program import LoaderFacts

MIN_SHARE_TO_REPORT = 0.25
"""Share of a sample's time: what takes less is one part of many."""
LEAST_SAMPLES = 16
"""With fewer, one slow file is the mean."""


def timed_samples(observation: Observation) -> tuple[LoaderFacts, Loading]:
    """Return the loader that feeds the step, and the timed parts of its samples.

    Raises:
        Abstain: they were not timed.
    """
    seen = observation.deep.loading if observation.deep else None
    loader = step_loader(observation)
    if seen is None or loader is None or seen.num_samples < LEAST_SAMPLES:
        raise Abstain("the timed parts of a sample (a run without --no-deep and --full)")
    return loader, seen


def wait_for(observation: Observation, loader: LoaderFacts, parts: Iterable[LoadingPart]) -> Cost:
    """Return what parts of a sample cost the step: their share of the wait for data."""
    wait = making_cost(observation, bursts=loader.num_workers > 0)
    return wait.times(min(1.0, sum(part.share for part in parts)))


def said_wait(observation: Observation) -> str:
    """Return how much of the step the wait for data is, as a clause."""
    return f"the step waits for data {phase_cost(observation, Phase.DATA, bursts=True).share:.0%} of its time"
