"""larger_batch: the training loaders make larger batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.diagnose.memory_limit import FULL, memory_limit
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.larger_batch.activation import LargerBatches
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

FACTORS = (2, 4, 8)
EXPECTED = 1.1
"""Of each doubling, for the order of trials alone."""
FIXED = frozenset({"parameters", "gradients", "optimizer_state", "buffers", "other"})
"""Classes of the peak that do not grow with the batch."""
CAUTION = (
    "a larger batch is another optimization problem: choose the learning rate and its schedule for it, and validate; "
    "hotloop changes neither"
)


class LargerBatch(Optimization):
    """Train with larger batches.

    What it does: `batch_size` of the training loaders (those that shuffle, have a sampler, or read an
    IterableDataset) is raised from `instead_of` to `batch_size`: twice, four and eight times as many samples are
    measured. Evaluation keeps its own. What is compared is time per sample, never time per step: the plan holds the
    smallest batch size that no larger one was shown to beat, which is where the plateau of throughput begins.

    Why it is faster: the part of a step that does not depend on the batch (Python, launches, the optimizer, gradient
    exchange) is paid for fewer times per sample, and larger matrices use the device better.

    When it does not help: a device that is busy already; a program that waits for its data; loaders with a batch
    sampler of their own, and batches that the program makes without a DataLoader: there it is for you to change. Sizes
    that are expected to take more than 90% of memory are not tried, and a trial that takes more is ended, so that
    there is head room for a longer batch. `hotloop memory plan` says which batch fits devices that you do not have.

    Effect on numerics: another optimization problem. It is never tried unless you ask for it by name
    (`--allow semantic --only larger_batch`): losses of another batch size cannot be compared, so nothing else can be
    proven beside it, and whether it learns as well is not measured. The learning rate, its schedule, and the number of
    epochs stay as they are and are yours to choose: an epoch has fewer steps. Rules such as scaling the learning rate
    with the batch, or with its square root for Adam, are starting points for your own validation. Batch norm sees more
    samples.

    Example: `DataLoader(dataset, batch_size=256, shuffle=True)` instead of `batch_size=64`

    References: Goyal et al. 2017, Accurate, Large Minibatch SGD; Shallue et al. 2019, Measuring the Effects of Data
    Parallelism on Neural Network Training; McCandlish et al. 2018, An Empirical Model of Large-Batch Training.
    """

    name: ClassVar[str] = "larger_batch"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC
    proven_alone: ClassVar[bool] = True

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return multiples of the batch size that have room in memory and in the data set."""
        loaders = training_loaders(observation)
        sizes = {loader.batch_size for loader in loaders}
        size = next(iter(sizes)) if len(sizes) == 1 else None
        if size is None:
            raise DoesNotApply("the training loaders have no batch size in common that could be raised")
        lengths = [loader.dataset_len for loader in loaders if loader.dataset_len is not None]
        num = min(lengths) // max(1, observation.program.world_size) if lengths else None
        fitting = [factor for factor in FACTORS if num is None or factor * size <= num]
        if not fitting:
            raise DoesNotApply(f"the data set has {num} samples, too few for two batches of {size}")
        roomy = [factor for factor in fitting if _has_room(observation, factor)]
        if not roomy:
            raise DoesNotApply(f"twice the batch is expected to take more than {FULL:.0%} of memory")
        return [
            self.candidate(
                params={"batch_size": factor * size, "instead_of": size},
                prior=EXPECTED ** math.log2(factor),
                samples=_mean_batch(factor * size, num) / _mean_batch(size, num),
                caution=CAUTION,
            )
            for factor in roomy
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the sizes."""
        only(params, "batch_size", "instead_of")
        for key in ("batch_size", "instead_of"):
            required(params, key)
            integer(params, key, 1, 1 << 24)
        if params["batch_size"] <= params["instead_of"]:
            raise ValueError(
                f"batch_size is {params['batch_size']!r}; allowed: more than {params['instead_of']!r}"
            )

    def samples(self, params: Mapping[str, Any]) -> float:
        """Return how much larger a batch is."""
        return float(params["batch_size"] / params["instead_of"])

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the loaders."""
        return LargerBatches(params["batch_size"], params["instead_of"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Give the training loaders the size; the learning rate is left as it is."""
        from hotloop.optimize.loaders.loader_rewrite import rewrite_loaders

        return rewrite_loaders(source, sites, {"batch_size": str(params["batch_size"])})


def _mean_batch(size: int, num: int | None) -> float:
    """Return the samples of an average batch: the last one of an epoch is short."""
    return float(size) if num is None else num / math.ceil(num / size)


def _has_room(observation: Observation, factor: int) -> bool:
    """Whether a batch so many times as large is expected to leave head room; where nothing is known it is tried."""
    memory, limit = observation.memory, memory_limit(observation)
    if memory.peak_bytes is None or limit is None:
        return True
    account = memory.account
    if account is None:
        return True
    growing = sum(size for name, size in account.held.by_class.items() if name not in FIXED)
    return memory.peak_bytes + (factor - 1) * growing <= FULL * limit
