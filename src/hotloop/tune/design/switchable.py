"""What can be switched on and off in a running program, and needs no process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.optimize.optimization import Optimization


def switchable(optimization: Optimization, candidate: Candidate) -> bool:
    """Whether a candidate can be switched to and fro at little cost, with nothing left behind."""
    knob = optimization.knob(candidate.params)
    return knob is not None and not knob.lasting


def has_workers(observation: Observation, plan: Sequence[Candidate]) -> bool:
    """Whether loader workers feed the steps of a program with this on."""
    asked = [step.params["num_workers"] for step in plan if "num_workers" in step.params]
    return bool(asked[-1]) if asked else any(loader.num_workers for loader in observation.program.loaders)


def interactions(optimizations: Sequence[Optimization]) -> dict[str, frozenset[str]]:
    """Return what each optimization may help or hinder, whichever of the two says so."""
    return {
        one.name: one.interacts | {other.name for other in optimizations if one.name in other.interacts}
        for one in optimizations
    }
