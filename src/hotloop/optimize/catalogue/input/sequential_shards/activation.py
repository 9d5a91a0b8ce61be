"""The activation of sequential_shards: loaders that shuffle shards."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.catalogue.input.sequential_shards.shard_order import ShardOrder
from hotloop.probe.activation.activation import Activation


class InShards(Activation):
    """Gives shuffled loaders an order that goes shard by shard.

    Args:
        shard_size: samples of a shard.
    """

    def __init__(self, shard_size: int) -> None:
        self._shard_size = shard_size
        self._orders: list[ShardOrder] = []
        self._reason = "no shuffled loader over a map-style data set was made"

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Give a shuffled loader the order."""
        dataset: Any = keywords.get("dataset")
        plain = all(keywords.get(name) is None for name in ("sampler", "batch_sampler"))
        if not keywords.get("shuffle") or not plain or not hasattr(dataset, "__getitem__"):
            return keywords
        if len(dataset) < 2 * self._shard_size:
            self._reason = f"its {len(dataset)} samples are fewer than two shards of {self._shard_size}"
            return keywords
        order = ShardOrder(len(dataset), self._shard_size, keywords.get("generator"))
        self._orders.append(order)
        keywords.pop("shuffle")
        return {**keywords, "sampler": order}

    def effect(self) -> tuple[bool, str]:
        """Return whether an epoch had the order."""
        epochs = sum(order.num_epochs for order in self._orders)
        if not epochs:
            return False, self._reason
        return True, f"{epochs} epoch(s) were read in shards of {self._shard_size} neighbouring samples"
