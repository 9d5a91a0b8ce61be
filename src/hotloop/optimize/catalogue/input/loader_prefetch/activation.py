"""The activation of loader_prefetch: the keyword of loaders with workers."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.loaders.iterators import IteratorWatch
from hotloop.probe.activation.activation import Activation


class PrefetchKeyword(Activation):
    """Sets `prefetch_factor`.

    Args:
        prefetch_factor: batches ahead of each worker.
    """

    def __init__(self, prefetch_factor: int) -> None:
        self._prefetch_factor = prefetch_factor
        self._watch = IteratorWatch()

    def on_torch(self) -> None:
        """Watch the iterators."""
        self._watch.install()

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Set it where there are workers; without any, DataLoader refuses it."""
        if keywords.get("num_workers"):
            keywords["prefetch_factor"] = self._prefetch_factor
        return keywords

    def effect(self) -> tuple[bool, str]:
        """Return whether workers were seen with it."""
        if any(seen.prefetch_factor == self._prefetch_factor for seen in self._watch.seen):
            return True, f"workers with {self._prefetch_factor} batches ahead were seen"
        return False, "no iterator with workers was seen"
