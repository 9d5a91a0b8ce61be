"""loader_prefetch: each worker prepares more batches ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.loader_prefetch.activation import PrefetchKeyword
from hotloop.optimize.loaders.training_loaders import loaders_with_workers
from hotloop.optimize.loaders.worker_knob import WorkerKnob
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.optimize.program.bounds import bound, expected, require_share, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class LoaderPrefetch(Optimization):
    """Let each worker prepare more batches ahead.

    What it does: `prefetch_factor` of loaders that have workers is set; torch's own is 2 batches a worker.

    Why it is faster: a longer queue bridges slow batches (a large image, a cold file) that would otherwise be
    waited for.

    When it does not help: when loading is slower than training on average; a queue evens out, it makes
    nothing faster. It takes memory for every batch waiting, in shared memory.

    Effect on numerics: none.

    Example: `DataLoader(dataset, batch_size=64, num_workers=4, prefetch_factor=4)`

    References: torch.utils.data documentation.
    """

    name: ClassVar[str] = "loader_prefetch"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory"})
    touches_numbers: ClassVar[bool] = False

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return two and four times as many as now, where steps wait for workers."""
        loaders = loaders_with_workers(observation)
        require_share(observation, Phase.DATA, "waiting for data")
        current = max(loader.prefetch_factor or 2 for loader in loaders)
        # A queue removes the uneven part of the wait only; a tenth of it is a guess that orders trials.
        prior = expected(share(observation, Phase.DATA), 1.1)
        limit = bound(observation, Phase.DATA)
        return [
            self.candidate(params={"prefetch_factor": n}, max_gain=limit, prior=prior)
            for n in (2 * current, 4 * current)
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the number of batches."""
        only(params, "prefetch_factor")
        required(params, "prefetch_factor")
        integer(params, "prefetch_factor", 1, 1024)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the loaders' keywords."""
        return PrefetchKeyword(params["prefetch_factor"])

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what feeds the steps from longer queues."""
        return WorkerKnob(None, params["prefetch_factor"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the keyword of the training loaders."""
        from hotloop.optimize.loaders.loader_rewrite import rewrite_loaders

        return rewrite_loaders(source, sites, {"prefetch_factor": repr(params["prefetch_factor"])})
