"""loader_workers and loader_prefetch as a knob: batches come from a second loader while it is on."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.knobs.threads import ThreadKnob
from hotloop.optimize.loaders.fetches import Fetches, epoch_of, key_of, loader_of
from hotloop.optimize.loaders.shadow_loader import (
    DEFAULT_PREFETCH,
    ShadowLoader,
    reason_against_workers,
)
from hotloop.probe.activation.knob import Knob


class WorkerKnob(Knob):
    """Feeds the steps from loaders with other workers.

    Args:
        num_workers: None: as many as the program's loader has.
        prefetch_factor: None: the program's, else torch's default.
        persistent: the workers live on from epoch to epoch; None: as the program's do.
        num_threads: of the training process; None: the program's.
    """

    lasting = True

    def __init__(
        self,
        num_workers: int | None,
        prefetch_factor: int | None = None,
        persistent: bool | None = None,
        num_threads: int | None = None,
    ) -> None:
        self._num_workers = num_workers
        self._prefetch_factor = prefetch_factor
        self._persistent = persistent
        self._threads = ThreadKnob(num_threads) if num_threads is not None else None
        self._fetches = Fetches()
        self._shadows: dict[int, ShadowLoader] = {}
        self._seen: set[int] = set()
        self._reason = "no DataLoader feeds the steps"
        # Queues that were filled while others ran would flatter the first steps.
        self.settle_steps = (num_workers or 1) * (prefetch_factor or DEFAULT_PREFETCH) + 1

    def on_torch(self) -> None:
        """Insert the knob between the loop and its loaders."""
        self._fetches = Fetches.of_process()

    def watch(self, steps: int) -> None:
        """See which loaders feed the steps."""
        self._fetches.watch(steps)

    def switch(self, on: bool) -> None:
        """Start the other workers, or end them."""
        if self._threads is not None:
            self._threads.switch(on)
        self._fetches.instead = self._next if on else None
        for shadow in self._shadows.values():
            shadow.close()
        self._shadows.clear()

    def _next(self, iterator: Any) -> Any:
        loader = loader_of(iterator)
        key = key_of(loader)
        shadow = self._shadows.get(key)
        if shadow is None:
            workers = loader.num_workers if self._num_workers is None else self._num_workers
            self._reason = reason_against_workers(loader, workers, self._prefetch_factor or DEFAULT_PREFETCH)
            if self._reason:
                return self._fetches.fetch(iterator)
            persistent = loader.persistent_workers if self._persistent is None else self._persistent
            shadow = self._shadows[key] = ShadowLoader(
                loader, workers, self._prefetch_factor, self._fetches.fetch, persistent=persistent
            )
        batch = shadow.next(epoch_of(iterator))
        self._seen.add(shadow.num_processes)
        return batch

    def effect(self) -> tuple[bool, str]:
        """Return whether batches came from the other workers."""
        if not self._seen:
            return False, self._reason
        return True, f"batches came from {sorted(self._seen)} worker processes"
