"""Tensors and constants in containers; anything else that a module is given a second run might change."""

from __future__ import annotations

import copy
import dataclasses
from collections import UserDict
from collections.abc import Callable
from enum import Enum
from typing import Any

_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, range, slice, type(...), Enum)


class NotPlain(Exception):  # noqa: N818 - an answer, not an error
    """With the name of a type that is neither a tensor, nor a constant, nor a container of those."""


def rebuilt(
    value: Any, change: Callable[[Any], Any], constant: Callable[[Any], Any] = lambda each: each
) -> Any:
    """Return new containers, with `change` applied to each tensor; what is there twice is there twice again.

    Args:
        value: tensors and constants in tuples, lists, dictionaries and dataclasses.
        change: of a tensor.
        constant: of what is neither a tensor nor a container.

    Raises:
        NotPlain: there is something else in it.
    """
    return _Rebuilding(change, constant).of(value)


def leaves(value: Any) -> tuple[list[Any], list[Any]]:
    """Return the tensors and the constants in a value.

    Raises:
        NotPlain: there is something else in it.
    """
    tensors: list[Any] = []
    constants: list[Any] = []

    def into(found: list[Any]) -> Callable[[Any], Any]:
        def add(each: Any) -> Any:
            found.append(each)
            return each

        return add

    rebuilt(value, into(tensors), into(constants))
    return tensors, constants


class _Rebuilding:
    def __init__(self, change: Callable[[Any], Any], constant: Callable[[Any], Any]) -> None:
        self._change = change
        self._constant = constant
        self._made: dict[int, tuple[Any, Any]] = {}
        """Each mutable thing with what is made of it; held, or another might take its id."""

    def of(self, value: Any) -> Any:
        import torch

        if isinstance(value, (*_CONSTANTS, torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return self._constant(value)
        if id(value) not in self._made:
            self._made[id(value)] = value, self._new(value)
        return self._made[id(value)][1]

    def _new(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            return self._change(value)
        if isinstance(value, tuple):
            items = list(map(self.of, value))
            # A named tuple takes its fields one by one; torch.return_types and plain tuples take one iterable.
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, list):
            items = list(map(self.of, value))
            made = copy.copy(value)
            made[:] = items
            return made
        if isinstance(value, (dict, UserDict)):
            changed = {key: self.of(item) for key, item in value.items()}
            mapping: Any = copy.copy(value)
            for key, item in changed.items():
                mapping[key] = item
            return mapping
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value)
        raise NotPlain(type(value).__name__)

    def _dataclass(self, value: Any) -> Any:
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                item = self.of(getattr(value, field.name))
                object.__setattr__(made, field.name, item)  # works for frozen ones too
        return made
