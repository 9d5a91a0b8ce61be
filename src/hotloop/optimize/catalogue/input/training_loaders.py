"""Which loaders of the program feed the training step."""

from __future__ import annotations

from hotloop.model.observation import LoaderFacts, Observation
from hotloop.optimize.optimization import DoesNotApply


def training_loaders(observation: Observation) -> tuple[LoaderFacts, ...]:
    """Return the loaders that were seen to feed steps, or all of them where that was not seen.

    Raises:
        DoesNotApply: the program has no DataLoader, or none that was iterated.
    """
    loaders = observation.program.loaders
    if not loaders:
        raise DoesNotApply("the program has no DataLoader")
    used = tuple(loader for loader in loaders if loader.used_in_step)
    return used or loaders


def loaders_with_workers(observation: Observation) -> tuple[LoaderFacts, ...]:
    """Return the training loaders that have workers.

    Raises:
        DoesNotApply: there are none.
    """
    loaders = tuple(loader for loader in training_loaders(observation) if loader.num_workers > 0)
    if not loaders:
        raise DoesNotApply("no training loader has workers (see loader_workers)")
    return loaders
