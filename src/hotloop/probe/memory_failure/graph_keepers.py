"""Tensors whose graph reaches into earlier steps: a running total, a state that was never detached."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

MAX_NODES = 20_000
"""Of one graph that are gone through, the oldest first: a step has some thousands."""


def graph_keepers(tensors: Sequence[Any], earlier_nodes: int) -> list[Any]:
    """Return those of some tensors with a graph that keep earlier steps, and that are not computed from another one.

    Args:
        tensors: each has a graph.
        earlier_nodes: sequence number below which nodes belong to an earlier step.
    """
    if not earlier_nodes:
        return []
    by_node = {id(tensor.grad_fn): tensor.grad_fn for tensor in tensors}  # one object, as long as it is held
    return [tensor for tensor in tensors if _keeps(tensor.grad_fn, earlier_nodes, by_node)]


def _keeps(start: Any, earlier_nodes: int, others: Mapping[int, Any]) -> bool:
    """Go through a graph until a node is another tensor's, or of an earlier step."""
    pending, seen = [(_number(start), 0, start)], {id(start): start}
    while pending and len(seen) < MAX_NODES:
        number, _, node = heapq.heappop(pending)
        if node is not start and id(node) in others:
            return False
        if number < earlier_nodes:
            return True
        for after, _ in node.next_functions:
            if after is not None and id(after) not in seen:
                seen[id(after)] = after
                heapq.heappush(pending, (_number(after), len(seen), after))
    return False


def _number(node: Any) -> int:
    """Nodes that add gradients up belong to no step, and have the largest number that there is."""
    return int(node._sequence_nr())
