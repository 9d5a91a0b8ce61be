"""The activation of larger_batch: another batch size for the loaders that shuffle."""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation


class LargerBatches(Activation):
    """Gives training loaders of one batch size another one.

    Args:
        batch_size: of their batches.
        instead_of: the program's own.
    """

    def __init__(self, batch_size: int, instead_of: int) -> None:
        self._batch_size = batch_size
        self._instead_of = instead_of
        self._num_changed = 0
        self._num_batches = 0

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Change the size where the order of the samples is a training's: evaluation keeps its own."""
        from torch.utils.data import IterableDataset

        trains = (
            keywords.get("shuffle")
            or keywords.get("sampler") is not None
            or isinstance(keywords.get("dataset"), IterableDataset)
        )
        if keywords.get("batch_size", 1) != self._instead_of or not trains:
            return keywords
        if keywords.get("batch_sampler") is not None:
            return keywords
        self._num_changed += 1
        return {**keywords, "batch_size": self._batch_size}

    def on_batch(self, batch: Any) -> Any:
        """Count the batches."""
        self._num_batches += 1
        return batch

    def effect(self) -> tuple[bool, str]:
        """Return whether a loader has the size, and gave batches."""
        if not self._num_changed:
            return False, f"no loader that shuffles makes batches of {self._instead_of}"
        return self._num_batches > 0, (
            f"batches of {self._batch_size} instead of {self._instead_of}, timed per sample; "
            "learning rate and schedule are as they were"
        )
