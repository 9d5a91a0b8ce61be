"""What the tensors that a program holds are there for, by the memory that they lie in."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from time import monotonic_ns
from typing import Any, NamedTuple

PARAMETERS, GRADIENTS, STATE, BUFFERS, OTHER = range(5)
"""The classes, in the order in which one counts before another; the model has their names."""


class StorageClasses:
    """The models and optimizers of a program, and the memory of their tensors."""

    def __init__(self) -> None:
        self.releases: list[tuple[int, int]] = []
        """When what was found is released, and its address: of a CPU's older memory the allocator does not tell."""
        self._watched: list[Any] = []
        self._parameters: list[Any] = []
        self._optimizers: list[Any] = []

    def all_tensors(self) -> list[dict[str, Any]]:
        """Find the program's tensors; return the memory of each: address, bytes, class, and what the others are."""
        from torch import Tensor, nn
        from torch.optim import Optimizer

        modules, others = [], []
        for each in gc.get_objects():
            kind = type(each)
            if issubclass(kind, nn.Module):
                modules.append(each)
            elif issubclass(kind, Optimizer):
                self._optimizers.append(each)
            elif issubclass(kind, Tensor):
                others.append(each)
        self._parameters = list(_distinct(self._found(modules)))
        buffers = (each for module in modules for each in module.__dict__.get("_buffers", {}).values())
        rows: dict[int, dict[str, Any]] = {}
        for number, tensors in (
            (PARAMETERS, self._parameters),
            (GRADIENTS, self._gradients()),
            (STATE, self._states()),
            (BUFFERS, buffers),
            (OTHER, others),
        ):
            for tensor in tensors:
                _take(rows, tensor, number)
        self._watched = [self._watch(row.pop("storage"), row["address"]) for row in rows.values()]
        return list(rows.values())

    def gradients(self) -> list[int]:
        """Return the addresses of the gradients that are there now."""
        return _addresses(self._gradients())

    def states(self) -> list[int]:
        """Return the addresses of what the optimizers keep now."""
        return _addresses(self._states())

    def let_go(self) -> None:
        """Hold nothing of the program any more."""
        self._parameters, self._optimizers, self._watched = [], [], []

    def _watch(self, storage: Any, address: int) -> weakref.ref[Any]:
        note = self.releases.append
        return weakref.ref(storage, lambda _: note((monotonic_ns(), address)))

    def _found(self, modules: Iterable[Any]) -> Iterator[Any]:
        for module in modules:
            yield from module.__dict__.get("_parameters", {}).values()
        for optimizer in self._optimizers:
            for group in getattr(optimizer, "param_groups", ()):
                yield from group.get("params", ())

    def _gradients(self) -> Iterator[Any]:
        for parameter in self._parameters:
            if parameter.grad is not None:
                yield parameter.grad

    def _states(self) -> Iterator[Any]:
        for optimizer in self._optimizers:
            for state in list(getattr(optimizer, "state", {}).values()):
                yield from _tensors_in(state, depth=2)


def _distinct(tensors: Iterable[Any]) -> Iterator[Any]:
    seen = set()
    for tensor in tensors:
        if tensor is not None and id(tensor) not in seen:
            seen.add(id(tensor))
            yield tensor


def _tensors_in(value: Any, depth: int) -> Iterator[Any]:
    if hasattr(value, "untyped_storage"):
        yield value
    elif depth and isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(each, depth - 1)


class _Place(NamedTuple):
    """Where a tensor lies."""

    address: int
    num_bytes: int
    storage: Any


def _place(tensor: Any) -> _Place | None:
    """Return where a tensor lies; None: it has no memory of its own (fake, sharded, sparse)."""
    try:
        storage = tensor.untyped_storage()
        return _Place(storage.data_ptr(), storage.nbytes(), storage)
    except Exception:  # the probe fails open: tensor subclasses answer as they like
        return None


def _addresses(tensors: Iterable[Any]) -> list[int]:
    places = (_place(tensor) for tensor in tensors if tensor is not None)
    return [place.address for place in places if place is not None]


def _take(rows: dict[int, dict[str, Any]], tensor: Any, number: int) -> None:
    place = _place(tensor) if tensor is not None else None
    if place is None or not place.address or not place.num_bytes:
        return
    row = rows.setdefault(
        place.address,
        {
            "address": place.address,
            "bytes": place.num_bytes,
            "class": number,
            "device": str(tensor.device),
            "graph": False,
            "storage": place.storage,
        },
    )
    if row["class"] == OTHER:
        row["shape"], row["dtype"] = list(tensor.shape), str(tensor.dtype)
        row["graph"] = row["graph"] or tensor.grad_fn is not None
