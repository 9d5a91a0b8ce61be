"""Read a batch by one indexing operation, from a data set that was written to be read sample by sample."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any

from hotloop.optimize.catalogue.input.vectorized_fetch.branches import decides
from hotloop.optimize.dataset.determinism import MAX_CHECKING_SHARE, DeterminismCheck
from hotloop.optimize.dataset.pace import Pace
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import copy_of, same

MAX_PROOF_S = 5.0
"""Comparing goes on so long before the first step, or until every row was compared."""
MIN_BATCHES = 8
"""And at least for so many batches."""


class WholeBatches:
    """A data set whose `dataset[[3, 1, 4]]` is the batch of its samples 3, 1 and 4.

    Attributes:
        dataset: the program's.
        num_batches: batches that were read as a whole in this process.
        num_compared: rows of which that was compared, sample by sample.
    """

    def __init__(
        self,
        loader: Any,
        max_share: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        reads: bool = True,
    ) -> None:  # keeps nothing, so that it needs no memory
        """Compare batches of a loader's data set, read both ways.

        Args:
            loader: the program's, map-style.
            max_share: of the memory; unused.
            clock: seconds; tests bring their own.
            reads: False: only the first batches are compared.

        Raises:
            CannotKeep: they differ, or cannot be compared.
        """
        from torch.utils.data import Subset, default_collate

        del max_share
        self.dataset = loader.dataset
        self.num_batches = self.num_compared = 0
        self._collate = loader.collate_fn
        self._length = len(self.dataset)
        self._choice = random.Random(0)
        self._pace = Pace(MAX_CHECKING_SHARE)
        if self._collate is not default_collate:
            raise CannotKeep("it is collated by a function of the program's own")
        if hasattr(self.dataset, "__getitems__") and not isinstance(self.dataset, Subset):
            raise CannotKeep("it reads whole batches already (__getitems__)")
        DeterminismCheck(self.dataset).probe()
        decision = decides(lambda: self.dataset[0])
        if decision is not None:
            raise CannotKeep(
                f"{decision}() decides something for each sample, which it would decide once for a batch"
            )
        self._compare_all(loader.batch_size or 1, clock, MAX_PROOF_S if reads else 0.0)

    def _compare_all(self, size: int, clock: Callable[[], float], most_s: float) -> None:
        end = clock() + most_s
        for number, index in enumerate(self._batches(size)):
            self._compare(index)
            if number >= MIN_BATCHES and clock() > end:
                return

    def _batches(self, size: int) -> Iterator[list[int]]:
        """Yield a single row, a pair, and every row in batches of another order than the data set's."""
        order = list(range(self._length))
        self._choice.shuffle(order)
        yield order[:1]
        yield order[:2]
        for first in range(0, self._length, size):
            yield order[first : first + size]

    def _compare(self, index: list[int]) -> None:
        fresh = self._collate([copy_of(self.dataset[i]) for i in index])
        try:
            whole = self._whole(index)
        except Exception as error:  # a data set may refuse several indices with what it likes
            raise CannotKeep(f"it cannot be indexed with several rows at once: {error!r}") from error
        if not same(fresh, whole):
            raise CannotKeep("a batch that is read at once is not the batch of its samples")
        self.num_compared += len(index)

    def _whole(self, index: Sequence[int]) -> Any:
        from torch.utils.data import default_convert

        return default_convert(self.dataset[list(index)])

    def check_again(self) -> None:
        """Compare a batch, now and then.

        Raises:
            CannotKeep: it is not the batch of its samples any more.
        """
        self._pace.do(lambda: self._compare(self._choice.sample(range(self._length), min(8, self._length))))

    def covers(self, collate: Any, index: Any) -> bool:
        """Whether a batch can be read at once: the same collate function, plain indices."""
        return (
            collate is self._collate
            and isinstance(index, (list, tuple))
            and all(isinstance(i, Integral) and not isinstance(i, bool) for i in index)
        )

    def batch(self, index: Sequence[int], collate: Any) -> Any:
        """Return the batch of these indices."""
        self.num_batches += 1
        return self._whole(index)
