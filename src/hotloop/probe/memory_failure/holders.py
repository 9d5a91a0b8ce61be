"""What the program's own names hold at the end: containers, arrays, tensors that belong to no model."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.named_containers import NamedContainers, Place, is_container
from hotloop.probe.instruments.object_sizes import (
    DEPTH,
    address,
    attributes,
    entries,
    has_data,
    held_bytes,
    is_sized,
)
from hotloop.probe.memory_failure.graph_keepers import graph_keepers

MOST_NAMED = 6
MOST = 0.5
"""Of a container, in a container that it names: the inner one is told alone, otherwise the outer one."""

MOST_COMPARED = 24
"""Of the largest: smaller ones are not shown."""

Named = tuple[Place, Any]


class Sized(NamedTuple):
    """What a name holds, and what is told of it."""

    value: Any
    row: dict[str, Any]


def named_values(frame: FrameType | None) -> list[Named]:
    """Return what names of the program hold.

    Args:
        frame: the innermost of the program's when memory ran out; None: not known.
    """
    walk = NamedContainers(Frames(), _is_wanted)
    return list(itertools.chain(_of_worker(walk), walk.of_variables(frame), walk.of_modules()))


def holders(named: Sequence[Named], models: Collection[int], earlier_nodes: int = 0) -> list[dict[str, Any]]:
    """Return those that hold most; tensors that keep graphs of earlier steps before all: they are small themselves.

    Args:
        named: what names hold.
        models: addresses of what models and optimizers hold, too: without a name it stays.
        earlier_nodes: sequence number below which nodes belong to an earlier step; 0: not known.
    """
    keepers = graph_keepers([value for _, value in named if _has_graph(value)], earlier_nodes)
    found = [
        Sized(value, _described(place, value, models)) for place, value in named if not _has_graph(value)
    ]
    found.sort(key=lambda one: -float(one.row["held_bytes"]))
    first = [_described(*pair, models) for pair in named if any(pair[1] is one for one in keepers)]
    return [*first, *(one.row for one in _once_each(found))][:MOST_NAMED]


def kept_addresses(named: Sequence[Named], given: Collection[int]) -> set[int]:
    """Return where the tensors lie that containers hold; one with a tensor that a model was given is a batch.

    Args:
        named: what names hold.
        given: addresses of the tensors that a model was given.
    """
    kept: set[int] = set()
    for _, value in named:
        if not has_data(value):
            inside = set(_addresses(value, DEPTH))
            kept |= inside if inside.isdisjoint(given) else set()
    return kept


def _of_worker(walk: NamedContainers) -> Iterator[Named]:
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    return walk.of_object(info.dataset) if info is not None else iter(())


def _is_wanted(value: Any) -> bool:
    if has_data(value):
        return type(value).__name__ != "Parameter"
    return is_container(value) or is_sized(value)


def _once_each(found: list[Sized]) -> list[Sized]:
    """Leave out what is told with another: an entry with its container, or a container with most of it.

    Args:
        found: the largest first, so that a container stands before its entries.
    """
    kept: list[Sized] = []
    for one in found[:MOST_COMPARED]:
        outer = next((each for each in kept if _holds(each.value, one.value, DEPTH)), None)
        if outer is None:
            kept.append(one)
        elif one.row["num"] is not None and one.row["held_bytes"] > MOST * outer.row["held_bytes"]:
            kept[kept.index(outer)] = one
    return kept


def _holds(outer: Any, value: Any, depth: int) -> bool:
    inside = list(_inside(outer, whole=False)) if depth and not has_data(outer) else []
    return any(each is value or _holds(each, value, depth - 1) for each in inside)


def _described(place: Place, value: Any, models: Collection[int]) -> dict[str, Any]:
    return {
        **place._asdict(),
        "kind": type(value).__name__,
        "num": len(value) if is_sized(value) else None,
        "held_bytes": held_bytes(value, beside=models),
        "keeps_graph": _keeps_graph(value, DEPTH),
    }


def _has_graph(value: Any) -> bool:
    return getattr(value, "grad_fn", None) is not None


def _keeps_graph(value: Any, depth: int) -> bool:
    if _has_graph(value):
        return True
    return bool(depth) and any(_keeps_graph(each, depth - 1) for each in _inside(value, whole=False))


def _addresses(value: Any, depth: int) -> Iterator[int]:
    if has_data(value):
        yield address(value)
    elif depth:
        for each in _inside(value, whole=True):
            yield from _addresses(each, depth - 1)


def _inside(value: Any, *, whole: bool) -> Iterator[Any]:
    """Yield what a container or an object holds, or of a large container some of it."""
    if isinstance(value, dict):
        yield from value.values() if whole else (entry for _, entry in entries(value))
    elif is_sized(value):
        yield from value if whole else entries(value)
    yield from attributes(value).values()
