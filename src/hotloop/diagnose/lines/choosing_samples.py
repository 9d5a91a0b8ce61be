"""What the wait for data is made of: choosing a batch's samples, making it, and waiting for workers that make it.

The training process chooses samples itself, with workers too, and unpacks what they send.
"""

from __future__ import annotations

from collections.abc import Callable

from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.model.deep import Frame, HostSamples, Sample
from hotloop.model.observation import Observation, Phase

_LOADER = "torch/utils/data/dataloader.py"
_FETCHER = "torch/utils/data/_utils/fetch.py"
"""In the stack of whatever makes a batch."""
_CHOOSES = frozenset({"_next_index", "_get_iterator"})
"""The loader's functions that ask the sampler for indices, and that start an iterator."""

_ENDS = frozenset({"_get_iterator", "_shutdown_workers"})
"""What happens where an epoch ends, which is no part of a step, unless each step is an epoch."""
_GETS = "_try_get_data"
"""The loader's function that asks the queue of workers, or of the thread that pins, for a batch."""
_WAITS = frozenset({"poll", "_poll", "wait", "select"})
"""What stands below it until there is one; unpacking it comes after."""


def chooses(frame: Frame) -> bool:
    """Whether what stands below a frame chooses samples."""
    return frame.path.endswith(_LOADER) and frame.function.rpartition(".")[2] in _CHOOSES


def makes(frame: Frame) -> bool:
    """Whether what stands below a frame makes a batch."""
    return frame.path.endswith(_FETCHER)


def is_making(host: HostSamples, sample: Sample) -> bool:
    """Whether a batch was being made."""
    return any(makes(host.frames[number]) for number in sample.stack)


def choosing_share(observation: Observation) -> float:
    """Return the share of the wait for data in which samples are chosen, 0 to 1; 0 where it was not sampled."""
    return _part(observation, _is_choosing)


def making_cost(observation: Observation, *, bursts: bool = False) -> Cost:
    """Return what waiting for batches costs without the choice of their samples: what workers and data sets change.

    Raises:
        Abstain: no step was measured.
    """
    return phase_cost(observation, Phase.DATA, bursts=bursts).times(1.0 - choosing_share(observation))


def awaiting_cost(observation: Observation) -> Cost:
    """Return what the training process waits for workers; all of the wait for data where it was not sampled.

    Raises:
        Abstain: no step was measured.
    """
    busy = _part(observation, lambda host, sample: not _is_awaiting(host, sample))
    return phase_cost(observation, Phase.DATA, bursts=True).times(1.0 - busy)


def _part(observation: Observation, wanted: Callable[[HostSamples, Sample], bool]) -> float:
    """Return the share of a step's wait for data that is wanted; 0: it was not sampled."""
    host = observation.deep.host if observation.deep else None
    own = [one for one in host.samples if one.process == "train" and one.phase == Phase.DATA] if host else []
    if host is not None and observation.epoch_steps != 1:
        own = [one for one in own if not _ENDS.intersection(_names(host, one))]
    whole = sum(one.spent_s for one in own)
    return sum(one.spent_s for one in own if host and wanted(host, one)) / whole if whole else 0.0


def _names(host: HostSamples, sample: Sample) -> list[str]:
    return [host.frames[number].function.rpartition(".")[2] for number in sample.stack]


def _is_awaiting(host: HostSamples, sample: Sample) -> bool:
    names = _names(host, sample)
    return _GETS in names and not _WAITS.isdisjoint(names[names.index(_GETS) :])


def _is_choosing(host: HostSamples, sample: Sample) -> bool:
    return any(chooses(host.frames[number]) for number in sample.stack)
