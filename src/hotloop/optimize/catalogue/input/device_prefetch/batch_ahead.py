"""A batch that a thread makes while the program does something else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

Held = dict[str, object]


class Ended:
    """The epoch has no further batch."""


class Ahead:
    """One batch under way.

    Args:
        future: of it.
        make: makes it anew.
        dataset: that it is made of; None: it lives in workers.
        held: its attributes when the batch was asked for.

    Attributes:
        failed: why the thread could not make it; empty: it could, or has not been asked.
    """

    def __init__(self, future: Future[Any], make: Callable[[], Any], dataset: Any, held: Held) -> None:
        self._future = future
        self._make = make
        self._dataset = dataset
        self._held = held
        self.failed = ""

    def take(self) -> Any:
        """Return the batch; made anew where the program has changed its data set meanwhile, or the thread failed.

        What is wrong with the data set itself is raised then as without us. Workers that failed have told so, and
        would give the batch after it.
        """
        try:
            batch = self._future.result()
        except Exception as error:
            if self._dataset is None:
                raise
            self.failed = f"a thread could not make a batch: {error!r}"
            return self._make()
        return batch if attributes_of(self._dataset) == self._held else self._make()


class Maker:
    """The thread that makes batches."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._last: Future[Any] | None = None
        self._thread = 0
        os.register_at_fork(after_in_child=self._forget)

    def begin(
        self, make: Callable[[], Any], finish: Callable[[Any], Any] | None, dataset: Any = None
    ) -> Ahead:
        """Begin to make a batch.

        Args:
            make: makes it.
            finish: is told of it, in the thread.
            dataset: that it is made of, where that is in this process.
        """

        def work() -> Any:
            self._thread = threading.get_ident()
            batch = make()
            if finish is not None:
                finish(batch)
            return batch

        if self._executor is None:
            self._executor = _one_thread()
        held = attributes_of(dataset)  # before it begins: what making it does to them counts as a change
        self._last = self._executor.submit(work)
        return Ahead(self._last, make, dataset, held)

    def wait(self) -> None:
        """Wait until nothing is under way; what was made is still handed out to who asked for it."""
        last = self._last
        if last is not None and threading.get_ident() != self._thread:
            last.exception()
            self._last = None

    def _forget(self) -> None:
        """A child has no thread."""
        self._executor = self._last = None


def _one_thread() -> ThreadPoolExecutor:
    """Return a thread that computes with itself alone, as a loader's workers do.

    Threads of its own would be more than there are cores: libgomp then lets the program's threads sleep at every
    barrier, even while this one is idle, and a convolutional net's step of 13 ms took 22.
    """
    import torch

    num = torch.get_num_threads()
    executor = ThreadPoolExecutor(1, thread_name_prefix="hotloop-next-batch", initializer=_compute_alone)
    executor.submit(torch.get_num_threads).result()
    torch._C.set_num_threads(num)  # it is each thread's own, but later threads begin with what was set last
    return executor


def _compute_alone() -> None:
    import torch

    torch.get_num_threads()  # a thread's first question or operation sets its own number
    torch._C.set_num_threads(1)


def attributes_of(dataset: Any) -> Held:
    """Return the attributes of a data set and of the ones in it: numbers and words by value, the rest by identity."""
    held: Held = {}
    for depth in range(4):
        for name, value in list(getattr(dataset, "__dict__", {}).items()):
            plain = isinstance(value, (int, float, str, bool, type(None)))
            held[f"{depth}.{name}"] = value if plain else id(value)
        dataset = getattr(dataset, "dataset", None)
        if dataset is None:
            break
    return held
