"""The activation of persistent_workers: the keyword of loaders with workers."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.loaders.iterators import IteratorWatch
from hotloop.optimize.loaders.kept_workers import LastingWorkers
from hotloop.probe.activation.activation import Activation


class KeptWorkers(Activation):
    """Sets `persistent_workers`."""

    def __init__(self) -> None:
        self._watch = IteratorWatch()
        self._lasting = LastingWorkers()

    def on_torch(self) -> None:
        """Watch the iterators, and the data sets between epochs."""
        self._watch.install()
        self._lasting.install()

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Set it where there are workers, unless the data set is told the epoch."""
        if keywords.get("num_workers"):
            self._lasting.keep(keywords)
        return keywords

    def effect(self) -> tuple[bool, str]:
        """Return whether workers that live on were seen, and no data set that changes beside them."""
        if self._lasting.reason:
            return False, self._lasting.reason
        if any(seen.num_workers and seen.persistent_workers for seen in self._watch.seen):
            return True, "workers that live on after the epoch were seen"
        return False, "no iterator with workers was seen"
