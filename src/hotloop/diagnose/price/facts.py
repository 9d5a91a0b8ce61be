"""What several rules ask of an Observation's program and machine."""

from __future__ import annotations

import math
import re

from hotloop.diagnose.abstain import Abstain
from hotloop.model.observation import Observation
from hotloop.model.program import LoaderFacts
from hotloop.stats.quietness import is_busy


def step_loader(observation: Observation) -> LoaderFacts | None:
    """Return the loader that feeds the step; None: the program has none there."""
    return next((loader for loader in observation.program.loaders if loader.used_in_step), None)


def num_cores(observation: Observation) -> int:
    """Return the cores that the program may use.

    Raises:
        Abstain: the observation does not tell.
    """
    known = observation.machine.get("num_cores")
    if not isinstance(known, int) or known < 1:
        raise Abstain("the machine's number of cores")
    return known


def num_processes(observation: Observation) -> int:
    """Return how many processes train at once."""
    training = sum(rank.role == "train" for rank in observation.ranks)
    return max(1, training, observation.program.world_size)


def cores_per_process(observation: Observation) -> int:
    """Return the cores of one training process, at least 1."""
    return max(1, num_cores(observation) // num_processes(observation))


def batch_samples(observation: Observation) -> float | None:
    """Return the samples of one step, at least a batch of its loader; None: no batch was seen.

    The rate is that of all steps together: times the mean step.
    """
    step, loader = observation.step, step_loader(observation)
    if step is None or step.samples_per_s is None:
        return None
    seen = step.samples_per_s * step.whole_s
    if not math.isfinite(seen):
        return None
    return max(round(seen), (loader and loader.batch_size) or 1)


_REPEATED = re.compile(r"(\d+)x\((.*)\)")


def repeated_passes(observation: Observation) -> int:
    """Return how often forward and backward come in a row before the optimizer's step; 1 where they do not."""
    step = observation.step
    matches = [found for part in (step.rhythm if step else ()) if (found := _REPEATED.fullmatch(part))]
    repeats = {frozenset(found[2].split()): int(found[1]) for found in matches}
    return max(
        (n for unit, n in repeats.items() if {"forward", "backward"} <= unit and "optimizer" not in unit),
        default=1,
    )


def micro_batches(observation: Observation) -> int:
    """Return the backward passes of a step that each have samples of their own: gradients are accumulated; else 1.

    Closures of an optimizer are no micro-batches: the step's samples would be those of one pass times their number.
    """
    samples, num = batch_samples(observation), repeated_passes(observation)
    if samples is None:
        return 1
    loader = step_loader(observation)
    sizes = {
        shapes[0][0]
        for root in observation.program.roots
        if root.training and (shapes := root.input_shapes) and shapes[0]
    }
    if loader is not None and loader.batch_size:
        sizes = {loader.batch_size}
    return num if round(samples / num / num_processes(observation)) in sizes else 1


def trains(observation: Observation) -> bool:
    """Whether the observed steps have a backward pass."""
    return observation.anchor is not None and not observation.anchor.infers


def on_cpu(observation: Observation) -> bool:
    """Whether the model computes on the processor."""
    return observation.program.device == "cpu"


def contended(observation: Observation) -> bool:
    """Whether others took so much of the processors meanwhile that waiting on a CPU says little of the program."""
    return on_cpu(observation) and is_busy(observation.foreign_share)
