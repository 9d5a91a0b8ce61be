"""dataset_in_memory: every sample is read, decoded and transformed once, and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.kept_loaders import MAX_SHARE, check_share, fill_s, kept_loaders
from hotloop.optimize.loaders.training_loaders import refuse_random_samples
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.parameters import boolean, only
from hotloop.optimize.program.bounds import bound, expected, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class DatasetInMemory(Optimization):
    """Read the whole data set once, before training, and keep its samples in memory.

    What it does: before the first epoch each sample is fetched once and kept. Where the loader uses torch's own
    collate function and all samples have the same shapes, they are kept collated, one tensor per field: a batch
    is then one indexing operation per field. Loaders with workers make their batches in the training process
    (`in_process`), or their workers share what was kept before they were started.

    Why it is faster: opening, reading, decoding and transforming a sample again in every epoch gives the same
    numbers again.

    When it does not help: data sets that do not fit into the stated share of the free memory (`max_share`,
    0.25 unless given), a single epoch, loading that other processes hide already. Reading it all takes time
    before the first step; it is reported as a one-off cost with its break-even. Data sets that are not
    deterministic are left alone. That is observed, never guessed: twelve samples are fetched several times, and
    the global generators, the data set's own generators and attributes, the files it writes and the clock are
    watched meanwhile; at each epoch's start attributes and files are checked again, and some samples where that
    takes no more than 1% of the time.

    Effect on numerics: none; batches are the same, bit by bit.

    Example: `samples = [dataset[i] for i in range(len(dataset))]; loader = DataLoader(samples, ...)`

    References: torch.utils.data documentation.
    """

    name: ClassVar[str] = "dataset_in_memory"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {
            "loader_workers",
            "loader_prefetch",
            "persistent_workers",
            "cached_preprocessing",
            "vectorized_fetch",
            "ram_disk",
            "remote_loading",
            "faster_decode",
            "device_augmentation",
        }
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return it for map-style loaders; those with workers get it in the training process, too."""
        loaders = kept_loaders(observation)
        refuse_random_samples(loaders)
        limit = bound(observation, Phase.DATA)
        workers = any(loader.num_workers for loader in loaders)
        # From memory loading takes next to nothing: a tenth of the wait is a guess that orders trials.
        prior = expected(share(observation, Phase.DATA), 10.0)
        return [
            self.candidate(
                params={"in_process": in_process} if workers else {},
                max_gain=None if workers else limit,
                prior=prior,
                one_off_s=fill_s(observation, loaders),
            )
            for in_process in ([True, False] if workers else [False])
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the share of the memory and where batches are made."""
        only(params, "max_share", "in_process")
        boolean(params, "in_process")
        check_share(params)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what keeps the samples."""
        return DatasetCache(params.get("max_share", MAX_SHARE), bool(params.get("in_process")))

    def knob(self, params: Mapping[str, Any]) -> Knob | None:
        """Return the same, to be switched; None: workers that run already cannot be, so it has a process of its own."""
        if "in_process" in params:
            return None
        return DatasetCache(params.get("max_share", MAX_SHARE), in_process=False, on=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put a class that keeps samples around the training loaders' data sets."""
        from hotloop.optimize.catalogue.input.dataset_in_memory.rewrite import rewrite_kept

        return rewrite_kept(source, sites, in_process=params.get("in_process"))
