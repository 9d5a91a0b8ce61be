"""What the program's own names hold at the end: containers, arrays, tensors that belong to no model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.named_containers import NamedContainers, Place, is_container
from hotloop.probe.instruments.object_sizes import DEPTH, entries, has_data, held_bytes, is_sized
from hotloop.probe.memory_failure.graph_keepers import graph_keepers

MOST_NAMED = 6


def holders(frame: FrameType | None, earlier_nodes: int = 0) -> list[dict[str, Any]]:
    """Return those that hold most; tensors that keep graphs of earlier steps before all: they are small themselves.

    Args:
        frame: the innermost of the program's when memory ran out; None: not known.
        earlier_nodes: sequence number below which nodes belong to an earlier step; 0: not known.
    """
    walk = NamedContainers(Frames(), _is_wanted)
    every = list(itertools.chain(_of_worker(walk), _named(walk, frame)))
    keepers = graph_keepers([value for _, value in every if _has_graph(value)], earlier_nodes)
    found = [_described(*pair) for pair in every if not _has_graph(pair[1])]
    found.sort(key=lambda row: -float(row["held_bytes"]))
    first = [_described(*pair) for pair in every if any(pair[1] is one for one in keepers)]
    return [*first, *found][:MOST_NAMED]


def _named(walk: NamedContainers, frame: FrameType | None) -> Iterator[tuple[Place, Any]]:
    return itertools.chain(walk.of_variables(frame), walk.of_modules())


def _of_worker(walk: NamedContainers) -> Iterator[tuple[Place, Any]]:
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    return walk.of_object(info.dataset) if info is not None else iter(())


def _is_wanted(value: Any) -> bool:
    if has_data(value):
        return type(value).__name__ != "Parameter"
    return is_container(value) or is_sized(value)


def _described(place: Place, value: Any) -> dict[str, Any]:
    return {
        **place._asdict(),
        "kind": type(value).__name__,
        "num": len(value) if is_sized(value) else None,
        "held_bytes": held_bytes(value),
        "keeps_graph": _keeps_graph(value, DEPTH),
    }


def _has_graph(value: Any) -> bool:
    return getattr(value, "grad_fn", None) is not None


def _keeps_graph(value: Any, depth: int) -> bool:
    if _has_graph(value):
        return True
    return bool(depth and is_sized(value) and any(_keeps_graph(each, depth - 1) for each in entries(value)))
