"""vectorized_fetch: a batch is one indexing operation, not one a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.vectorized_fetch.activation import BatchedReads
from hotloop.optimize.catalogue.input.vectorized_fetch.whole_batches import WholeBatches
from hotloop.optimize.loaders.training_loaders import refuse_random_samples, training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import bound, expected, require_share, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.deep import Loading
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

FILES = 0.2
"""Of a sample's time: a data set that opens, reads and decodes so much is no array."""


class VectorizedFetch(Optimization):
    """Read a batch by one indexing operation where the data set is an array.

    What it does: the data set is asked for all indices of a batch at once (`dataset[[3, 1, 4]]`), and what comes
    out is the batch; its transforms run once, on the batch. It keeps nothing and takes no memory.

    Why it is faster: `__getitem__`, the transforms and stacking cost Python calls and a small tensor for every
    sample; one indexing operation copies all rows.

    When it does not help: where samples are read from files or decoded. Data sets that are random, that decide
    something for each sample (an `if` in `__getitem__`, or in a function that it calls), that have a collate
    function of their own, or that refuse several indices, are left alone. Before the first epoch batches are read
    both ways and compared, for five seconds or until every row was; further ones are compared now and then, and
    where one differs, samples are read one by one again.

    Effect on numerics: none; batches are the same, bit by bit.

    Example: `def __getitems__(self, indices): return self.x[indices], self.y[indices]`, with
    `DataLoader(..., collate_fn=torch.utils.data.default_convert)`

    References: torch.utils.data documentation, `__getitems__`.
    """

    name: ClassVar[str] = "vectorized_fetch"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory", "cached_preprocessing"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for map-style loaders that are waited for and do not read files."""
        loaders = training_loaders(observation)
        if all(loader.iterable for loader in loaders):
            raise DoesNotApply("an IterableDataset has no indices")
        if all(loader.batch_size is None for loader in loaders):
            raise DoesNotApply("the data set gives whole batches already, or a sampler of batches is in use")
        require_share(observation, Phase.DATA, "waiting for data")
        refuse_random_samples(loaders)
        _refuse_files(observation.deep.loading if observation.deep else None)
        workers = any(loader.num_workers for loader in loaders)
        # A fifth of the wait stays: a guess that orders trials.
        prior = expected(share(observation, Phase.DATA), 5.0)
        limit = None if workers else bound(observation, Phase.DATA)
        return [self.candidate(max_gain=limit, prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what reads whole batches."""
        return BatchedReads(1.0, in_process=False, keep=WholeBatches)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, to be switched where batches are made in the training process."""
        return BatchedReads(1.0, in_process=False, on=False, keep=WholeBatches)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put a class that reads whole batches around the training loaders' data sets."""
        from hotloop.optimize.catalogue.input.vectorized_fetch.rewrite import rewrite_vectorized

        return rewrite_vectorized(source, sites)


def _refuse_files(seen: Loading | None) -> None:
    if seen is None:
        return
    files = sum(part.share for part in seen.parts if part.kind in {"open", "read", "decode"})
    if files > FILES:
        raise DoesNotApply(
            f"opening, reading and decoding take {files:.0%} of a sample's time: it is no array"
        )
