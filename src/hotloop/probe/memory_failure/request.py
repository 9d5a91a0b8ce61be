"""What the failing operation would have made: its shape, and whether that is the gradient of a parameter."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from hotloop.probe.memory_failure.live_storages import BACKWARD

PARAMETER_GRADIENT = "parameter gradients"
"""The phase of a backward in which the gradient of a parameter is made: its size is the model's, not the batch's."""


def result_shape(func: Any, args: Any, kwargs: Any) -> tuple[int, ...] | None:
    """Return the shape of an operation's largest result, found without memory; None: it depends on the data."""
    try:
        made = func(*tree_map(_without_memory, args), **_on_meta(tree_map(_without_memory, kwargs)))
    except Exception:  # an operator without a meta kernel says so in as many ways as there are operators
        return None
    results = [each for each in tree_leaves(made) if isinstance(each, torch.Tensor)]
    return max(
        (tuple(each.shape) for each in results), key=lambda shape: torch.Size(shape).numel(), default=None
    )


def phase_of_request(phase: str | None, shape: tuple[int, ...] | None) -> str | None:
    """Return the phase, told apart where a backward makes the gradient of a parameter.

    A linear layer's is made the other way round, so that the order of dimensions does not count.
    """
    if phase != BACKWARD or shape is None:
        return phase
    return PARAMETER_GRADIENT if sorted(shape) in _learned_shapes(gc.get_objects()) else phase


def _learned_shapes(objects: Iterable[Any]) -> list[list[int]]:
    tensors = (each for each in objects if issubclass(type(each), torch.Tensor))
    return [sorted(each.shape) for each in tensors if each.requires_grad and each.is_leaf]


def _without_memory(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    return value


def _on_meta(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**kwargs, "device": "meta"} if kwargs.get("device") is not None else kwargs
