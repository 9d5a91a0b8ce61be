"""Is a data set deterministic: does an index always give the same sample, and nothing else happens on the way?

A few samples are fetched several times. What is random is observed, never guessed from names: the global generators,
the data set's own generators and attributes, the files that it writes, the clock, and the values themselves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.model.quantities import listed
from hotloop.optimize.dataset.clocks import asks_for_time
from hotloop.optimize.dataset.opened_files import OpenedFiles
from hotloop.optimize.dataset.pace import Pace
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import copy_of, same
from hotloop.optimize.loaders.dataset_state import changed, state_of
from hotloop.probe.record.generators import GlobalGenerators

NUM_PROBED = 12
"""A sample that is changed with probability 1/4 stays unseen in all of 3 x 12 fetches in 3 of 100,000 runs."""
NUM_CHECKED_AGAIN = 4
"""Samples that are fetched anew at an epoch's start."""
MAX_CHECKING_SHARE = 0.01
"""Of the time: epochs of a few milliseconds were half spent on it."""


class DeterminismCheck:
    """Watches one data set from the first look to the last epoch.

    Args:
        dataset: map-style.
        choice: picks indices; a generator of its own, so that the program's are left alone.
    """

    def __init__(self, dataset: Any, choice: random.Random | None = None) -> None:
        self._dataset = dataset
        self._choice = choice or random.Random(0)
        self._state: dict[str, object] = {}
        self._pace = Pace(MAX_CHECKING_SHARE)
        self.files = OpenedFiles()

    def probe(self) -> None:
        """Fetch some samples several times.

        Raises:
            CannotKeep: the data set is not deterministic, or changes something.
        """
        before = GlobalGenerators()
        self._dataset[0]  # what is opened or made once, on first use, is so now
        self._state = state_of(self._dataset)
        with self.files:
            for index in self._indices(NUM_PROBED):
                self._probe_one(index)
        self._refuse_if_changed()
        if self.files.written is not None:
            raise CannotKeep(f"reading a sample writes the file {self.files.written}")
        refuse_if_drawn(before)

    def _probe_one(self, index: int) -> None:
        first = copy_of(self._dataset[index])
        clock = asks_for_time(lambda: self._dataset[index])
        if clock is not None:
            raise CannotKeep(f"reading a sample asks for {clock}: it may depend on it")
        if not same(first, self._dataset[index]):
            raise CannotKeep(f"sample {index} differs between reads")

    def check_again(self, matches: Callable[[int, Any], bool]) -> None:
        """See that the data set and its files are as they were; now and then fetch some samples anew, and compare.

        Args:
            matches: compares the kept sample of an index with a fresh one.

        Raises:
            CannotKeep: something is not as it was.
        """
        self._refuse_if_changed()
        file = self.files.changed()
        if file is not None:
            raise CannotKeep(f"the file {file} has changed since it was read")
        self._pace.do(lambda: self._fetch_again(matches))

    def _fetch_again(self, matches: Callable[[int, Any], bool]) -> None:
        before = GlobalGenerators()
        try:
            for index in self._indices(NUM_CHECKED_AGAIN):
                if not matches(index, self._dataset[index]):
                    raise CannotKeep(f"sample {index} is not what it was when it was kept")
            refuse_if_drawn(before)
        finally:
            before.restore()
        self._refuse_if_changed()

    def _indices(self, wanted: int) -> Sequence[int]:
        length = len(self._dataset)
        return range(length) if length <= wanted else self._choice.sample(range(length), wanted)

    def _refuse_if_changed(self) -> None:
        names = changed(self._state, state_of(self._dataset))
        if names:
            raise CannotKeep(f"{names[0]} of the data set changes")


def refuse_if_drawn(before: GlobalGenerators) -> None:
    """Refuse where the global generators were drawn from since; whoever asked puts them back.

    Raises:
        CannotKeep: they were.
    """
    drawn = before.drawn()
    if drawn:
        raise CannotKeep(f"reading a sample draws random numbers from {listed(drawn)}")
