"""The loaders whose samples can be kept in memory, how much memory that may take, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.model.observation import Observation, Phase
from hotloop.model.program import LoaderFacts
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.bounds import require_share

MAX_SHARE = 0.25
"""Of the free memory: two arms of a trial keep one copy each, and the program needs room to grow."""
MAX_SAMPLES = 5_000_000
"""Beyond it even 50 us a sample make four minutes before the first step."""


def kept_loaders(observation: Observation) -> Sequence[LoaderFacts]:
    """Return the training loaders whose samples have indices, are read more than once, and are waited for.

    Raises:
        DoesNotApply: there are none.
    """
    loaders = [loader for loader in training_loaders(observation) if not loader.iterable]
    if not loaders:
        raise DoesNotApply("an IterableDataset has no indices by which samples could be kept")
    if observation.total_steps is not None and all(loader.num_iterators <= 1 for loader in loaders):
        raise DoesNotApply("the program reads its data once: there is no second epoch to gain in")
    if any(loader.dataset_len is None or loader.dataset_len > MAX_SAMPLES for loader in loaders):
        raise DoesNotApply(f"a data set has more than {MAX_SAMPLES} samples, or no length")
    require_share(observation, Phase.DATA, "waiting for data")
    return loaders


def check_share(params: Mapping[str, Any]) -> None:
    """Check the parameter `max_share`.

    Raises:
        ValueError: it is no share.
    """
    value = params.get("max_share", MAX_SHARE)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
        raise ValueError(f"max_share is {value!r}; it must be a number above 0, at most 1")


def fill_s(observation: Observation, loaders: Sequence[LoaderFacts]) -> float | None:
    """Return about how long reading all samples takes, from the wait for a batch; None: it was not measured.

    Workers hide part of it: what is waited for then is too little, and what is reported is what a trial measures.
    """
    wait = observation.phases.get(Phase.DATA)
    if wait is None:
        return None
    batches = (
        loader.dataset_len / loader.batch_size
        for loader in loaders
        if loader.dataset_len and loader.batch_size
    )
    return sum(batches) * wait.median_s or None
