"""device_prefetch: the next batch is made and moved while this one computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.device_prefetch.activation import NextBatch
from hotloop.optimize.loaders.training_loaders import refuse_random_samples, training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import MIN_SHARE, bound, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class DevicePrefetch(Optimization):
    """Make the next batch in a thread, and copy it to the device on a stream of its own, while this one computes.

    What it does: when a batch is handed out, the indices of the next one are drawn, and a thread of the training
    process fetches and collates it. On a GPU the thread copies it, too, on a side stream; where the program then asks
    for the copy (`.to(device)`), it waits for that stream alone.

    Why it is faster: reading, decoding and large array operations leave Python's lock to others, so that loading
    goes on beside the step's kernels, without worker processes and without sending batches between them. A copy on
    a side stream goes on beside the kernels of the step before.

    When it does not help: data sets that compute in pure Python, which hold the lock; a CPU whose cores the step
    fills, or on which samples are kept in memory (there the two are not tried together). Left alone are an
    IterableDataset, samplers of the program's own (they may go by what the step did), data sets that draw
    from the global generators or change themselves when they are read, loaders with workers on a CPU, which make
    batches ahead already, and a default device that is set. Where the program changes an attribute of its data set
    between two batches, the batch under way is made anew. An epoch that is left early has read one batch more than
    it used.

    Effect on numerics: none; batches, their order and the random numbers of the program are the same.

    Example: `next_batch = executor.submit(next, batches)` before the step, `batch = next_batch.result()` after it

    References: NVIDIA Apex, data_prefetcher; torch.cuda.Stream documentation.
    """

    name: ClassVar[str] = "device_prefetch"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    moot_on_cpu: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory"})
    interacts: ClassVar[frozenset[str]] = frozenset(
        {"thread_count", "dataset_in_memory", "cached_preprocessing", "vectorized_fetch"}
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where steps wait for batches that this process makes, or for their copies."""
        loaders = training_loaders(observation)
        if all(loader.iterable for loader in loaders):
            raise DoesNotApply(
                "an IterableDataset may do more than yield samples: it is not asked ahead of time"
            )
        on_device = observation.program.device != "cpu"
        if not on_device and all(loader.num_workers for loader in loaders):
            raise DoesNotApply(
                "its workers make batches ahead already, and there is no device to move them to"
            )
        phases = (Phase.DATA, Phase.TRANSFER) if on_device else (Phase.DATA,)
        part = share(observation, *phases)
        if part is not None and part < MIN_SHARE:
            raise DoesNotApply(f"waiting for batches takes {part:.1%} of the step: there is nothing to gain")
        refuse_random_samples(loaders)
        # Beside each other the longer of the two sets the pace; on a CPU they share its cores: half of that.
        best = 1.0 if part is None else 1.0 / max(part, 1.0 - part)
        return [
            self.candidate(
                max_gain=bound(observation, *phases), prior=best if on_device else 1.0 + (best - 1.0) / 2
            )
        ]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what makes batches ahead."""
        return NextBatch()

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, to be switched."""
        return NextBatch(on=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Construct the training loaders of a class that makes its next batch in a thread."""
        from hotloop.optimize.catalogue.input.device_prefetch.rewrite import rewrite_prefetch

        return rewrite_prefetch(source, sites)
