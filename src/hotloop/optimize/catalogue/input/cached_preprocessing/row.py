"""cached_preprocessing: samples are read, decoded and transformed once, up to the first random transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.cached_preprocessing.kept_prefix import KeptPrefix
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.kept_loaders import (
    MAX_SHARE,
    check_share,
    fill_s,
    kept_loaders,
)
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.parameters import only
from hotloop.optimize.program.bounds import bound, expected, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class CachedPreprocessing(Optimization):
    """Keep every sample as it is before its first random transform, and run only the rest each time.

    What it does: the data set's chain of transforms (an object with a list `transforms`, such as `Compose`) is
    run on a few samples, transform by transform; those before the first one that is random are its deterministic
    prefix. Before the first epoch each sample is read, decoded and taken through the prefix, and kept. After
    that only the random transforms run, on copies. Workers share what was kept before they were started.

    Why it is faster: decoding and resizing an image usually takes most of a sample's time, and gives the same
    pixels in every epoch.

    When it does not help: where the random transforms take the time, a single epoch, data sets that do not fit
    into the stated share of the free memory (`max_share`, 0.25 unless given: decoded images take about ten times
    as much as JPEG files). Data sets that draw random numbers outside of their chain, change themselves or their
    files, or do not simply put what the chain returns into the sample are left alone; all of that is observed.

    Effect on numerics: none. The random transforms draw the same numbers in the same order as before.

    Example: decode and resize in the data set's `__init__`, and leave `RandomCrop` and what follows to `__getitem__`.

    References: torch.utils.data documentation.
    """

    name: ClassVar[str] = "cached_preprocessing"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {
            "dataset_in_memory",
            "vectorized_fetch",
            "ram_disk",
            "remote_loading",
            "faster_decode",
            "device_augmentation",
        }
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for map-style loaders whose data is waited for."""
        loaders = kept_loaders(observation)
        # Half of the wait: a guess between a chain that is all random and one that is not random at all.
        prior = expected(share(observation, Phase.DATA), 2.0)
        limit = None if any(loader.num_workers for loader in loaders) else bound(observation, Phase.DATA)
        one_off_s = fill_s(observation, loaders)
        return [self.candidate(max_gain=limit, prior=prior, one_off_s=one_off_s)]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the share of the memory."""
        only(params, "max_share")
        check_share(params)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what keeps the samples."""
        return DatasetCache(params.get("max_share", MAX_SHARE), in_process=False, keep=KeptPrefix)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, to be switched where batches are made in the training process."""
        return DatasetCache(params.get("max_share", MAX_SHARE), in_process=False, on=False, keep=KeptPrefix)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put a class that keeps samples half-way around the training loaders' data sets."""
        from hotloop.optimize.catalogue.input.cached_preprocessing.rewrite import rewrite_prefix

        return rewrite_prefix(source, sites)
