"""Change the tensors inside whatever a model takes or returns, keeping the containers' types."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, MutableMapping
from typing import Any


def map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return `value` with `change` applied to each tensor in it.

    Goes through tuples, named tuples, lists, dictionaries (also those of transformers, which are dataclasses
    as well) and dataclasses. What holds no tensor that changes is returned as the same object.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple):
        return _map_tuple(value, change)
    if isinstance(value, list):
        items = [map_tensors(item, change) for item in value]
        return value if _same(items, value) else _refill(value, items)
    if isinstance(value, MutableMapping):
        return _map_mapping(value, change)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _map_dataclass(value, change)
    return value


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors inside `value`."""
    found: list[Any] = []

    def keep(tensor: Any) -> Any:
        found.append(tensor)
        return tensor

    map_tensors(value, keep)
    return found


def _same(items: Any, value: Any) -> bool:
    return all(new is old for new, old in zip(items, value, strict=True))


def _map_tuple(value: Any, change: Callable[[Any], Any]) -> Any:
    items = [map_tensors(item, change) for item in value]
    if _same(items, value):
        return value
    # A named tuple takes its fields one by one; torch.return_types and plain tuples take one iterable.
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _refill(value: list[Any], items: list[Any]) -> list[Any]:
    copied = copy.copy(value)
    copied[:] = items
    return copied


def _map_mapping(value: Any, change: Callable[[Any], Any]) -> Any:
    changed = {key: map_tensors(item, change) for key, item in value.items()}
    if all(changed[key] is value[key] for key in changed):
        return value
    copied = copy.copy(value)
    for key, item in changed.items():
        copied[key] = item
    return copied


def _map_dataclass(value: Any, change: Callable[[Any], Any]) -> Any:
    changed = {
        field.name: map_tensors(getattr(value, field.name), change)
        for field in dataclasses.fields(value)
        if hasattr(value, field.name)
    }
    if all(item is getattr(value, name) for name, item in changed.items()):
        return value
    copied = copy.copy(value)
    for name, item in changed.items():
        object.__setattr__(copied, name, item)  # works for frozen ones too
    return copied
