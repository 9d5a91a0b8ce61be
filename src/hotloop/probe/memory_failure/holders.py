"""What the program's own names hold at the end: containers, arrays, tensors that belong to no model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.named_containers import NamedContainers, Place, is_container
from hotloop.probe.instruments.object_sizes import DEPTH, entries, has_data, held_bytes, is_sized

MOST_NAMED = 6


def holders(frame: FrameType | None) -> list[dict[str, Any]]:
    """Return those that hold most.

    Args:
        frame: the innermost of the program's when memory ran out; None: not known.
    """
    walk = NamedContainers(Frames(), _is_wanted)
    found = [
        _described(place, value) for place, value in itertools.chain(_of_worker(walk), _named(walk, frame))
    ]
    return sorted(found, key=lambda row: -float(row["held_bytes"]))[:MOST_NAMED]


def _named(walk: NamedContainers, frame: FrameType | None) -> Iterator[tuple[Place, Any]]:
    return itertools.chain(walk.of_variables(frame), walk.of_modules())


def _of_worker(walk: NamedContainers) -> Iterator[tuple[Place, Any]]:
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    return walk.of_object(info.dataset) if info is not None else iter(())


def _is_wanted(value: Any) -> bool:
    if has_data(value):
        return type(value).__name__ != "Parameter" and getattr(value, "grad_fn", None) is None
    return is_container(value) or is_sized(value)


def _described(place: Place, value: Any) -> dict[str, Any]:
    return {
        **place._asdict(),
        "kind": type(value).__name__,
        "num": len(value) if is_sized(value) else None,
        "held_bytes": held_bytes(value),
        "keeps_graph": _keeps_graph(value, DEPTH),
    }


def _keeps_graph(value: Any, depth: int) -> bool:
    if getattr(value, "grad_fn", None) is not None:
        return True
    return bool(depth and is_sized(value) and any(_keeps_graph(each, depth - 1) for each in entries(value)))
