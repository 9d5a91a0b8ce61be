"""An order in which neighbours are read one after the other: runs of a data set, in random order, each in sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class ShardOrder:
    """Yields the indices of shards in random order, those of a shard in sequence.

    Args:
        length: of the data set.
        shard_size: samples a shard.
        generator: the loader's; None: a seed is drawn as `RandomSampler` draws it.
    """

    def __init__(self, length: int, shard_size: int, generator: Any = None) -> None:
        self._length = length
        self._shard_size = shard_size
        self.generator = generator
        self.num_epochs = 0

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._length

    def __iter__(self) -> Iterator[int]:
        """Yield every index once."""
        import torch

        self.num_epochs += 1
        generator = self.generator
        if generator is None:
            generator = torch.Generator().manual_seed(
                int(torch.empty((), dtype=torch.int64).random_().item())
            )
        starts = range(0, self._length, self._shard_size)
        for number in torch.randperm(len(starts), generator=generator).tolist():
            yield from range(starts[number], min(starts[number] + self._shard_size, self._length))
