"""length_bucketing: samples of about equal length share a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.length_bucketing.activation import BucketedLoaders
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

LEAST = 0.05
"""Of a batch: with less padding there is little to win."""
CODE = '''\
class ByLength(torch.utils.data.Sampler):
    """Shuffled batches of samples that are about equally long."""

    def __init__(self, lengths, batch_size):
        self.lengths, self.batch_size = lengths, batch_size

    def __len__(self):
        return len(self.lengths)

    def __iter__(self):
        order, size = torch.randperm(len(self.lengths)).tolist(), self.batch_size
        full = len(order) - len(order) % size
        batches = []
        for first in range(0, full, 50 * size):
            pool = sorted(order[first : min(first + 50 * size, full)], key=self.lengths.__getitem__)
            batches += [pool[at : at + size] for at in range(0, len(pool), size)]
        for number in torch.randperm(len(batches)).tolist():
            yield from batches[number]
        yield from order[full:]

# lengths = [len(sample) for sample in dataset]
# DataLoader(dataset, batch_size=32, sampler=ByLength(lengths, 32), collate_fn=...) in place of shuffle=True
'''


class LengthBucketing(Optimization):
    """Put samples of similar length into one batch.

    What it does: the random order of a training loader is replaced by one in which fifty batches at a time are
    sorted by length; the batches then come in random order. Every sample still comes once an epoch, in another
    company. All samples are read once, before training, to learn their lengths.

    Why it is faster: a batch is padded to its longest sample, and the model computes on the padding. With lengths
    that vary as those of sentences do, a third to a half of a random batch is padding.

    When it does not help: samples of one length; a model that packs its sequences. Left alone are loaders that do
    not shuffle, with a sampler of their own, or over an IterableDataset, and data sets that draw random numbers.

    Effect on numerics: batches hold other samples together, so that gradients differ, and so may what is learned:
    it is tried only where you allow another optimization problem (`--allow semantic`).

    Example: `hotloop patch` prints a sampler, `ByLength(lengths, batch_size)`, to put in place of `shuffle=True`

    References: PyTorch performance tuning guide; Khomenko et al. 2016, Accelerating recurrent neural network training
    using sequence bucketing.
    """

    name: ClassVar[str] = "length_bucketing"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC
    conflicts: ClassVar[frozenset[str]] = frozenset({"sequential_shards"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where batches were seen to be padded."""
        loaders = training_loaders(observation)
        if all(loader.iterable for loader in loaders):
            raise DoesNotApply("an IterableDataset has an order of its own")
        seen = observation.deep.loading if observation.deep else None
        if seen is None:
            raise DoesNotApply("the lengths of its samples were not looked at")
        if seen.padding < LEAST:
            raise DoesNotApply(f"{seen.padding:.1%} of a batch is padding: there is nothing to gain")
        # Sorting leaves about a fifth of the padding; the step is taken to shrink with its batch.
        return [self.candidate(prior=1.0 / (1.0 - 0.8 * seen.padding))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what gives the loaders their order."""
        return BucketedLoaders()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Offer the sampler: what a sample's length is, and whether its company matters, a person knows."""
        from hotloop.source.outcome import Refused

        return Refused("batch composition changes; apply it yourself", CODE)
