"""preallocate_longest: memory for the longest batch is asked for before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.preallocate_longest.activation import LongestFirst
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

CODE = """\
longest = max(range(len(dataset)), key=lambda index: len(dataset[index][0]))
inputs, targets = collate([dataset[longest]] * batch_size)  # before the first epoch
criterion(model(inputs.to(device)), targets.to(device)).backward()
optimizer.zero_grad()  # no optimizer step: nothing is learned from it
"""


class PreallocateLongest(Optimization):
    """Run forward and backward once at the longest length before training, without an optimizer step.

    What it does: before the first training forward of a model, the same forward runs on its first batch stretched to
    the longest sample of the data set (its rows are repeated), with a backward of the sum of its outputs; the
    gradients are dropped. Buffers of batch norm and the random numbers are put back.

    Why it is faster: torch's caching allocator asks the driver for memory when a batch is larger than all before,
    and frees what it holds when that fails. With lengths that vary, this happens again and again in the first
    epoch, each time with a synchronization, and leaves memory in pieces. Asked for once, in the largest size, it
    serves every later batch.

    When it does not help: on a CPU, whose allocator is another; batches of one length; data sets that draw random
    numbers, or whose samples have no lengths.

    Effect on numerics: none; no parameter is changed.

    Example: `model(longest_batch).sum().backward(); optimizer.zero_grad()` before the first epoch

    References: PyTorch performance tuning guide, "Preallocate memory in case of variable input length".
    """

    name: ClassVar[str] = "preallocate_longest"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, on a device, where batches were seen in several lengths."""
        loaders = training_loaders(observation)
        if observation.program.device == "cpu":
            raise DoesNotApply(
                "the model is on the CPU, whose allocator keeps no pieces of a device's memory"
            )
        if all(loader.iterable for loader in loaders):
            raise DoesNotApply("the longest sample of an IterableDataset is not known before it comes")
        seen = observation.deep.loading if observation.deep else None
        if not any(root.shapes_vary for root in observation.program.roots) and not (seen and seen.padding):
            raise DoesNotApply("its batches were seen in one length")
        # What it saves is in the first epoch; a percent is a guess that orders trials.
        return [self.candidate(prior=1.01)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what runs the longest batch."""
        return LongestFirst()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Offer the code: which of a batch's parts are as long as its samples, a person knows."""
        from hotloop.source.outcome import Refused

        return Refused("which parts of a batch are as long as its samples, a person knows", CODE)
