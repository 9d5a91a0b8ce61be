"""The activation of length_bucketing: shuffled loaders get an order by length."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.catalogue.input.length_bucketing.bucketed_order import BucketedOrder
from hotloop.optimize.dataset.lengths import read_lengths
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.probe.activation.activation import Activation


class BucketedLoaders(Activation):
    """Replaces `shuffle=True` by a sampler that knows the lengths."""

    def __init__(self) -> None:
        self._orders: list[BucketedOrder] = []
        self._lengths: dict[int, tuple[Any, list[int]]] = {}
        self._reason = "no shuffled loader over a map-style data set was made"

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Give a shuffled loader the order, where its samples have different lengths."""
        dataset, size = keywords.get("dataset"), keywords.get("batch_size", 1)
        plain = all(keywords.get(name) is None for name in ("sampler", "batch_sampler"))
        if not keywords.get("shuffle") or not plain or size is None or not hasattr(dataset, "__getitem__"):
            return keywords
        lengths = self._lengths_of(dataset)
        if lengths is None:
            return keywords
        order = BucketedOrder(lengths, size, keywords.get("generator"))
        self._orders.append(order)
        keywords.pop("shuffle")
        return {**keywords, "sampler": order}

    def _lengths_of(self, dataset: Any) -> list[int] | None:
        if id(dataset) not in self._lengths:
            self._lengths[id(dataset)] = (dataset, self._read(dataset))
        return self._lengths[id(dataset)][1] or None

    def _read(self, dataset: Any) -> list[int]:
        """Return the lengths; empty: the data set keeps its order."""
        try:
            return read_lengths(dataset)
        except CannotKeep as refusal:
            self._reason = str(refusal)
            return []

    def effect(self) -> tuple[bool, str]:
        """Return whether an epoch had the order, and what became of the padding."""
        used = [order for order in self._orders if order.num_epochs]
        if not used:
            return False, self._reason
        before, after = used[0].padding()
        return True, f"padding is {after:.1%} of a batch, {before:.1%} in random order"
