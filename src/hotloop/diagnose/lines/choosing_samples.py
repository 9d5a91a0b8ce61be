"""What the training process does itself before a batch is made, with workers too: it chooses the batch's samples."""

from __future__ import annotations

from hotloop.diagnose.lines.hot_line import MOST, sampled_part
from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.model.deep import Frame, HostSamples, Sample
from hotloop.model.observation import Observation, Phase

_LOADER = "torch/utils/data/dataloader.py"
_FETCHER = "torch/utils/data/_utils/fetch.py"
"""In the stack of whatever makes a batch."""
_CHOOSES = frozenset({"_next_index", "_get_iterator"})
"""The loader's functions that ask the sampler for indices, and that start an iterator."""


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
    return sampled_part(observation, _is_choosing, Phase.DATA)


def mostly_chosen(observation: Observation) -> bool:
    """Whether the training process is what workers wait for: it chooses samples for most of the wait."""
    return choosing_share(observation) > MOST


def making_cost(observation: Observation, *, bursts: bool = False) -> Cost:
    """Return what waiting for batches costs without the choice of their samples: what workers and data sets change.

    Raises:
        Abstain: no step was measured.
    """
    return phase_cost(observation, Phase.DATA, bursts=bursts).times(1.0 - choosing_share(observation))


def _is_choosing(host: HostSamples, sample: Sample) -> bool:
    return any(chooses(host.frames[number]) for number in sample.stack)
