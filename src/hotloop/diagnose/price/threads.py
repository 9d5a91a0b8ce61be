"""How long computing takes with other numbers of threads, and a step whose batches are made by workers beside it."""

from __future__ import annotations

from hotloop.diagnose.price.cost import phase_share
from hotloop.diagnose.price.facts import on_cpu
from hotloop.model.observation import Observation, Phase

LONG_S = 2e-4
"""Of one call: waking a team of threads and waiting for the last one takes some 10 us, and torch divides no operation
of less than 32,768 elements, which take about 20 us."""
UNKNOWN = 0.5
"""The part of the computing that threads share, where operators were not seen."""
CROWDED = 1.5
"""How much slower a step is whose threads wait at barriers for one that lost its core to a worker. Measured on two
cores: one worker beside two threads 0.84, one and two workers beside one thread 1.3 and 1.5 times as fast."""


def parallel_share(observation: Observation) -> float:
    """Return the part of the computing on the processor that threads share, 0 to 1: long operators."""
    operators = observation.deep.operators if observation.deep is not None else None
    computing = phase_share(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    if operators is None or not computing:
        return UNKNOWN
    # Those of a loader in the training process are operators, too, and short.
    long = sum(one.share for one in operators.operators if one.self_s >= LONG_S * one.count)
    return min(1.0, long / computing)


def with_threads(observation: Observation, now: int, then: int) -> float:
    """Return how many times as long computing takes with `then` threads as with `now`, by Amdahl's law."""
    parallel = parallel_share(observation)
    return 1.0 + parallel * (now / then - 1.0)


def pipelined(observation: Observation, wait: float, cores: int, workers: int, threads: int | None) -> float:
    """Return the speed ratio of loading beside computing instead of before it: the slower of both sets the pace.

    On the CPU both share the cores, so that their work together is a second limit.

    Args:
        observation: what was measured.
        wait: share of the step, 0 to 1, in which the training process makes the batch.
        cores: of the training process.
        workers: of the loader, at least 1.
        threads: of the training process; None: as many as now.
    """
    compute = 1.0 - wait
    if not on_cpu(observation):
        return 1.0 / max(compute, wait / workers)
    now = min(cores, observation.program.num_threads or cores)
    then = now if threads is None else threads
    alone = compute * with_threads(observation, now, then)
    together = (wait + compute * with_threads(observation, now, 1)) / cores
    crowded = CROWDED if then > 1 and then + workers > cores else 1.0
    return 1.0 / (crowded * max(alone, wait / workers, together))
