"""Read a whole data set once and keep its samples, where that is right and where they fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from hotloop.optimize.dataset.budget import Budget
from hotloop.optimize.dataset.determinism import DeterminismCheck, refuse_if_drawn
from hotloop.optimize.dataset.kept_samples import Columns, KeptSamples, ListOfSamples
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import num_bytes, same
from hotloop.probe.record.generators import GlobalGenerators

CHUNK, CHUNK_BYTES = 256, 16 << 20
"""Samples that are read at a time, and what they take at most: while they are kept they are in memory twice."""
MAX_FILL_S = 600.0
"""Reading longer than this before the first step would be taken for a hang."""
CHECKED_BATCH = 8


class KeptDataset:
    """A data set whose samples are kept.

    Attributes:
        dataset: the program's.
        num_bytes: what the samples take, about.
        fill_s: seconds that reading them all took.
        num_batches: batches that were handed out in this process.
    """

    def __init__(
        self,
        loader: Any,
        max_share: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        reads: bool = True,
    ) -> None:
        """Read and keep all samples of a loader's data set.

        Args:
            loader: the program's, map-style.
            max_share: of the free memory that they may take.
            clock: seconds; tests bring their own.
            reads: False: only what forbids it is looked for, and nothing is kept.

        Raises:
            CannotKeep: with the reason.
        """
        self.dataset = loader.dataset
        self.num_batches = 0
        self._collate = loader.collate_fn
        self._clock = clock
        self._check = DeterminismCheck(self.dataset)
        self._check.probe()
        if not reads:
            return
        self._length = len(self.dataset)
        self._budget = Budget(max_share)
        self.num_bytes = self._expected_bytes()
        self._samples, self.fill_s = self._fill()
        self._refuse_unlike_fresh()

    def _expected_bytes(self) -> int:
        step = max(1, self._length // CHECKED_BATCH)
        sizes = [num_bytes(self.dataset[index]) for index in range(0, self._length, step)]
        expected = sum(sizes) * self._length // len(sizes)
        self._budget.expect(expected, self._length)
        return expected

    def _fill(self) -> tuple[KeptSamples, float]:
        started, before = self._clock(), GlobalGenerators()
        store = self._new_store()
        chunk = max(1, min(CHUNK, CHUNK_BYTES * self._length // max(1, self.num_bytes)))
        with self._check.files:
            for first in range(0, self._length, chunk):
                index = range(first, min(first + chunk, self._length))
                samples = self._fetch(index)
                self._budget.take(samples)
                store.add(samples)
                refuse_slow(self._clock() - started, self._length, index.stop)
        refuse_if_drawn(before)
        return store, self._clock() - started

    def _new_store(self) -> KeptSamples:
        from torch.utils.data import default_collate

        if self._collate is not default_collate:
            return ListOfSamples(self._collate)
        try:
            return Columns(self.dataset[0], self._length)
        except CannotKeep:
            return ListOfSamples(self._collate)

    def _fetch(self, index: Sequence[int]) -> Sequence[Any]:
        """Fetch as the loader does."""
        together = getattr(self.dataset, "__getitems__", None)
        return together(list(index)) if together else [self.dataset[i] for i in index]

    def _refuse_unlike_fresh(self) -> None:
        """Compare a batch with a fresh one where collating is known to draw nothing, and some samples once more."""
        index = list(range(0, self._length, max(1, self._length // CHECKED_BATCH)))[:CHECKED_BATCH]
        if isinstance(self._samples, Columns) and not same(
            self._samples.batch(index), self._collate(self._fetch(index))
        ):
            raise CannotKeep("a batch of kept samples is not the batch that the loader makes")
        self.check_again()

    def check_again(self) -> None:
        """See that the data set is still what was kept.

        Raises:
            CannotKeep: it is not.
        """
        self._check.check_again(self._samples.matches)

    def covers(self, collate: Any, index: Any) -> bool:
        """Whether a batch can be made of what is kept: the same collate function, plain indices."""
        if collate is not self._collate or not isinstance(index, (list, tuple)):
            return False
        return all(isinstance(i, Integral) and 0 <= int(i) < self._length for i in index)

    def batch(self, index: Sequence[int], collate: Any) -> Any:
        """Return the batch of these indices."""
        self.num_batches += 1
        return self._samples.batch(index)


def refuse_slow(spent_s: float, length: int, num: int) -> None:
    """Refuse what takes too long to read, judged by the first `num` samples.

    Raises:
        CannotKeep: reading them all would take longer than `MAX_FILL_S`.
    """
    expected = spent_s * length / num
    if expected > MAX_FILL_S:
        raise CannotKeep(f"reading all {length} samples would take about {expected / 60:.0f} minutes")
