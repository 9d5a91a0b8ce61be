"""The activation of loader_workers: keywords of DataLoader, changed for the loaders that can have workers."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.loaders.iterators import IteratorWatch
from hotloop.optimize.loaders.kept_workers import LastingWorkers
from hotloop.optimize.loaders.worker_hazards import reason_against
from hotloop.optimize.program.thread_settings import Threads
from hotloop.probe.activation.activation import Activation

_NEED_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
"""Keywords that DataLoader refuses, or asserts on, without workers."""
DEFAULT_PREFETCH = 2
"""torch's own prefetch_factor where workers are asked for without one."""


class WorkerKeywords(Activation):
    """Sets the number of workers of every loader that can have them.

    Args:
        num_workers: 0 loads in the training process.
        prefetch_factor: None: the program's, else torch's default.
        persistent_workers: None: the program's.
        num_threads: of the training process; None: the program's.
    """

    def __init__(
        self,
        num_workers: int,
        prefetch_factor: int | None,
        persistent_workers: bool | None,
        num_threads: int | None = None,
    ) -> None:
        self._num_workers = num_workers
        self._prefetch_factor = prefetch_factor
        self._persistent_workers = persistent_workers
        self._left_alone: list[str] = []
        self._num_changed = 0
        self._watch = IteratorWatch()
        self._lasting = LastingWorkers()
        self._threads = Threads(num_threads) if num_threads is not None else None

    def on_torch(self) -> None:
        """Watch the iterators, and the data sets between epochs; set the threads."""
        self._watch.install()
        self._lasting.install()
        if self._threads is not None:
            self._threads.on_torch()

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords with our workers, or as they are where workers would do harm."""
        prefetch = self._prefetch_factor or keywords.get("prefetch_factor") or DEFAULT_PREFETCH
        reason = reason_against(keywords, self._num_workers, prefetch)
        if reason:
            if reason not in self._left_alone:
                self._left_alone.append(reason)
            return keywords
        self._num_changed += 1
        return self._without_workers(keywords) if self._num_workers == 0 else self._with_workers(keywords)

    def _with_workers(self, keywords: dict[str, Any]) -> dict[str, Any]:
        keywords["num_workers"] = self._num_workers
        if self._prefetch_factor is not None:
            keywords["prefetch_factor"] = self._prefetch_factor
        if self._persistent_workers:
            self._lasting.keep(keywords)
        elif self._persistent_workers is not None:
            keywords["persistent_workers"] = False
        return keywords

    def _without_workers(self, keywords: dict[str, Any]) -> dict[str, Any]:
        keywords["num_workers"] = 0
        for name in _NEED_WORKERS:
            keywords.pop(name, None)
        return keywords

    def effect(self) -> tuple[bool, str]:
        """Return whether an iterator with our number of worker processes was seen, and the threads are ours."""
        if self._threads is not None and not self._threads.effect()[0]:
            return self._threads.effect()
        if self._lasting.reason:
            return False, f"the workers cannot live on: {self._lasting.reason}"
        alone = f"; left alone: {'; '.join(self._left_alone)}" if self._left_alone else ""
        if not self._num_changed:
            return False, f"no loader was changed{alone}"
        for seen in self._watch.seen:
            if seen.num_workers == self._num_workers:
                return True, f"an iterator with {seen.num_workers} worker processes was seen{alone}"
        numbers = sorted({seen.num_workers for seen in self._watch.seen})
        return (
            False,
            f"iterators with {numbers or 'no'} workers were seen, {self._num_workers} were asked for{alone}",
        )
