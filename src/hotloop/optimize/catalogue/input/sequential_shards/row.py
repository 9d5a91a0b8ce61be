"""sequential_shards: small random reads become long sequential ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.sequential_shards.activation import InShards
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.optimize.program.bounds import bound, expected, require_share, share
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

LEAST = 0.1
"""Of a sample's time in opening and reading: order makes nothing else faster."""
SHARD = 512
"""Samples: about 256 MiB of images, as `hotloop data pack` makes its shards."""
CODE = """\
# once, in a shell:  hotloop data pack SRC shards   (and  hotloop data check shards SRC)
from hotloop.data import PackedDataset

dataset = PackedDataset("shards", transform)  # in place of the one that opens a file a sample
# DataLoader(dataset, sampler=...) that goes through the shards in random order, and through each in sequence
"""


class SequentialShards(Optimization):
    """Read the data set in long runs instead of sample by sample from everywhere.

    What it does: the trial replaces the random order of a training loader by one that goes through runs of
    neighbouring samples (`shard_size`), the runs in random order, each from its start to its end. That is how shards
    are read; what it gives on files as they are is the least that shards give. To keep it, `hotloop data pack` writes
    the shards, and `hotloop data bench` says what this storage gives for random and for sequential reads.

    Why it is faster: a disk, a network mount and the system's read-ahead are made for sequences: gigabytes a second
    against tens of megabytes in pieces of 4 KiB. A packed sample needs no `open` of its own.

    When it does not help: files that are in memory; samples that take their time in decoding; loaders that do not
    shuffle, or with a sampler of their own. Where neighbours are alike, as in folders of one class each, batches of
    neighbours learn badly: pack in a random order, and shuffle within a buffer.

    Effect on numerics: every sample still comes once an epoch, in another order and in other company: it is tried only
    where you allow another optimization problem (`--allow semantic`).

    Example: `hotloop data pack images shards`, then `PackedDataset("shards", transform)`

    References: WebDataset.
    """

    name: ClassVar[str] = "sequential_shards"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC
    conflicts: ClassVar[frozenset[str]] = frozenset({"length_bucketing"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where opening and reading take some of the wait."""
        loaders = training_loaders(observation)
        if all(loader.iterable for loader in loaders):
            raise DoesNotApply("an IterableDataset has an order of its own")
        require_share(observation, Phase.DATA, "waiting for data")
        seen = observation.deep.loading if observation.deep else None
        if seen is None:
            raise DoesNotApply("what a sample's time goes to was not looked at")
        part = sum(each.share for each in seen.parts if each.kind in {"open", "read"})
        if part < LEAST:
            raise DoesNotApply(
                f"opening and reading take {part:.1%} of a sample's time: their order does not matter"
            )
        whole = share(observation, Phase.DATA)
        workers = any(loader.num_workers for loader in loaders)
        return [
            self.candidate(
                params={"shard_size": SHARD},
                max_gain=None if workers else bound(observation, Phase.DATA),
                prior=expected(whole * part if whole is not None else None, 2.0),
            )
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the size of a shard."""
        only(params, "shard_size")
        required(params, "shard_size")
        integer(params, "shard_size", 2, 1_000_000)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what gives the loaders their order."""
        return InShards(params["shard_size"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Offer the commands and the code: packing takes disk, and the order changes."""
        from hotloop.source.outcome import Refused

        return Refused("packing takes disk space and changes the order of samples; apply it yourself", CODE)
