"""persistent_workers: workers are kept from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.persistent_workers.activation import KeptWorkers
from hotloop.optimize.loaders.training_loaders import loaders_with_workers
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.source_calls import program_files
from hotloop.patterns.told_datasets import changed_from_outside
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

USUAL = 1.05
"""Published advice promises 5-10%."""


class PersistentWorkers(Optimization):
    """Keep the loaders' workers from epoch to epoch.

    What it does: `persistent_workers=True` for loaders that have workers.

    Why it is faster: otherwise every epoch ends and starts all worker processes: tens of milliseconds each by
    fork, seconds by spawn, and caches that the data set keeps in its workers are lost.

    When it does not help: one long epoch; loaders made anew every epoch. A data set that the program changes from
    outside (`dataset.set_epoch(epoch)`, `dataset.p = 0.5`) would not hear of it in living workers and is left alone.
    In a trial whose data set was seen to change between epochs the workers are started anew. A program that iterates
    one loader twice at the same time must not use it: both iterators would be one; the parity check sees that.

    Effect on numerics: the samples and their order are the same; random augmentation goes on with the
    workers' random numbers instead of being seeded anew each epoch.

    Example: `DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)`

    References: torch.utils.data documentation.
    """

    name: ClassVar[str] = "persistent_workers"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory"})
    touches_numbers: ClassVar[bool] = False

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where workers were started more than once."""
        loaders = loaders_with_workers(observation)
        if all(loader.persistent_workers for loader in loaders):
            raise DoesNotApply("the workers are persistent already")
        if all(loader.num_iterators <= 1 for loader in loaders if not loader.persistent_workers):
            raise DoesNotApply("no loader with workers was iterated a second time while it was observed")
        if any(loader.told_epoch for loader in loaders):
            raise DoesNotApply("the data set is told the epoch, which living workers would not hear")
        place = changed_from_outside(program_files(observation))
        if place:
            raise DoesNotApply(f"{place} may change the data set, which living workers would not hear")
        return [self.candidate(prior=max(USUAL, _without_boundaries(observation)))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the loaders' keywords."""
        return KeptWorkers()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the keyword of the training loaders."""
        from hotloop.optimize.loaders.loader_rewrite import rewrite_loaders

        return rewrite_loaders(source, sites, {"persistent_workers": "True"})


def _without_boundaries(observation: Observation) -> float:
    """Return how much faster it trains if nothing is left of what lies between epochs, where workers are started."""
    run = observation.run
    between_s = run.parts.get("epoch_boundary_s", 0.0)
    return run.training_s / (run.training_s - between_s) if 0 < between_s < run.training_s else 1.0
