"""Read a data set once, keep its samples as they are after the deterministic prefix of their transforms."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from hotloop.model.quantities import listed
from hotloop.optimize.dataset.budget import Budget
from hotloop.optimize.dataset.determinism import MAX_CHECKING_SHARE, NUM_CHECKED_AGAIN, NUM_PROBED
from hotloop.optimize.dataset.keep import refuse_slow
from hotloop.optimize.dataset.opened_files import OpenedFiles
from hotloop.optimize.dataset.pace import Pace
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import copy_of, num_bytes, same
from hotloop.optimize.dataset.transform_chain import chain_of, held_in, put_in
from hotloop.optimize.loaders.dataset_state import changed, state_of
from hotloop.probe.record.generators import GlobalGenerators


class KeptPrefix:
    """A data set whose samples are kept half-way.

    Attributes:
        dataset: the program's.
        num_bytes: what they take, about.
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
        """Read all samples of a loader's data set up to the first random transform.

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
        self._choice = random.Random(0)
        self._files = OpenedFiles()
        self._pace = Pace(MAX_CHECKING_SHARE)
        self._chain = chain_of(self.dataset)
        self._length = len(self.dataset)
        self.dataset[0]  # what is opened or made once, on first use, is so now
        self._chain.find_prefix(self.dataset, self._indices(NUM_PROBED))
        if not self._chain.suffix:
            raise CannotKeep("all of its transforms are deterministic: dataset_in_memory keeps whole samples")
        self._state = state_of(self.dataset)
        self._probe()
        if not reads:
            return
        started, before, budget = clock(), GlobalGenerators(), Budget(max_share)
        sizes = [num_bytes(held_in(self._half(index)).value) for index in self._indices(NUM_PROBED)]
        self.num_bytes = sum(sizes) * self._length // len(sizes)
        budget.expect(self.num_bytes, self._length)
        self._samples: list[Any] = []
        with self._files:
            for index in range(self._length):
                half = copied(self._half(index))
                budget.take([held_in(half).value])
                self._samples.append(half)
                refuse_slow(clock() - started, self._length, index + 1)
        self._refuse_drawn(before)
        self.fill_s = clock() - started
        self.check_again()

    def _half(self, index: int) -> Any:
        return self._chain.sample(self.dataset, index)

    def _probe(self) -> None:
        """Outside of the random suffix an index has to give the same, draw nothing and change nothing."""
        before = GlobalGenerators()
        with self._files:
            for index in self._indices(NUM_PROBED):
                if not _same_halves(copied(self._half(index)), self._half(index)):
                    raise CannotKeep(f"sample {index} differs between reads before its random transforms")
        if self._files.written is not None:
            raise CannotKeep(f"reading a sample writes the file {self._files.written}")
        self._refuse_drawn(before)
        self._refuse_changed()

    def _refuse_drawn(self, before: GlobalGenerators) -> None:
        drawn = before.drawn()
        if drawn:
            raise CannotKeep(f"it draws from {listed(drawn)} outside of its chain of transforms")

    def _refuse_changed(self) -> None:
        names = changed(self._state, state_of(self.dataset))
        if names:
            raise CannotKeep(f"{names[0]} of the data set changes")

    def check_again(self) -> None:
        """See that the data set is still what was kept.

        Raises:
            CannotKeep: it is not.
        """
        if not self._chain.is_unchanged():
            raise CannotKeep("its chain of transforms was changed")
        file = self._files.changed()
        if file is not None:
            raise CannotKeep(f"the file {file} has changed since it was read")
        self._pace.do(self._read_again)

    def _read_again(self) -> None:
        before = GlobalGenerators()
        try:
            for index in self._indices(NUM_CHECKED_AGAIN):
                if not _same_halves(self._samples[index], self._half(index)):
                    raise CannotKeep(f"sample {index} is not what it was when it was kept")
        finally:
            before.restore()

    def _indices(self, wanted: int) -> Sequence[int]:
        every = range(self._length)
        return every if self._length <= wanted else self._choice.sample(every, wanted)

    def covers(self, collate: Any, index: Any) -> bool:
        """Whether a batch can be made of what is kept: plain indices."""
        if not isinstance(index, (list, tuple)) or not self._chain.is_unchanged():
            return False
        return all(isinstance(i, Integral) and 0 <= int(i) < self._length for i in index)

    def batch(self, index: Sequence[int], collate: Any) -> Any:
        """Run the random transforms in the order of the batch, and collate."""
        self.num_batches += 1
        return collate([self._finished(self._samples[i]) for i in index])

    def _finished(self, half: Any) -> Any:
        return put_in(half, self._chain.finish(copy_of(held_in(half).value)))


def copied(half: Any) -> Any:
    """Return a half-made sample whose value nobody else holds."""
    held = held_in(half)
    held.value = copy_of(held.value)
    return half


def _same_halves(first: Any, second: Any) -> bool:
    return same(held_in(first).value, held_in(second).value) and same(
        put_in(first, None), put_in(second, None)
    )
