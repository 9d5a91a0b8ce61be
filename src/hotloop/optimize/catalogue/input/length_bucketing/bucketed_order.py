"""An order of a data set's samples in which those of one batch are about equally long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hotloop.probe.instruments.sample_length import padded

POOL = 50
"""Batches whose samples are sorted together: the orders of two epochs still differ, and padding is nearly gone."""


class BucketedOrder:
    """Yields indices as a random sampler does, sorted by length within pools of batches; batches in random order.

    Args:
        lengths: of the samples.
        batch_size: of the loader, which cuts the indices into batches.
        generator: the loader's; None: a seed is drawn as `RandomSampler` draws it.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, generator: Any = None) -> None:
        self._lengths = lengths
        self._batch_size = batch_size
        self.generator = generator
        self.num_epochs = 0

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        """Yield every index once; the batch that is not full comes last, as it does without."""
        self.num_epochs += 1
        batches = self.batches(self._random())
        return iter([index for batch in batches for index in batch])

    def _random(self) -> Any:
        import torch

        if self.generator is not None:
            return self.generator
        seed = int(torch.empty((), dtype=torch.int64).random_().item())
        return torch.Generator().manual_seed(seed)

    def batches(self, generator: Any) -> list[list[int]]:
        """Return the indices of each batch."""
        import torch

        order: list[int] = torch.randperm(len(self._lengths), generator=generator).tolist()
        full = len(order) - len(order) % self._batch_size
        rest, size = order[full:], POOL * self._batch_size
        batches: list[list[int]] = []
        for first in range(0, full, size):
            pool = sorted(order[first : min(first + size, full)], key=lambda index: self._lengths[index])
            batches.extend(pool[at : at + self._batch_size] for at in range(0, len(pool), self._batch_size))
        mixed = torch.randperm(len(batches), generator=generator).tolist()
        return [*(batches[number] for number in mixed), *([rest] if rest else [])]

    def padding(self) -> tuple[float, float]:
        """Return the share of a batch that is padding, in random order and in this one, with a generator of its own."""
        import torch

        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(self._lengths), generator=generator).tolist()
        plain = [order[at : at + self._batch_size] for at in range(0, len(order), self._batch_size)]
        return self._share(plain), self._share(self.batches(generator))

    def _share(self, batches: Sequence[Sequence[int]]) -> float:
        added = sum(padded([self._lengths[index] for index in batch]) for batch in batches)
        return added / (added + sum(self._lengths))
