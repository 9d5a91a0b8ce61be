"""What an operator gives whose output is as long as its values say, where nobody has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor

_WITHOUT_LARGEST = frozenset({"bincount", "repeat_interleave"})
"""Their output is as long as their values are high."""


def largest_output(func: Any, args: Any, kwargs: Any, known: Callable[[Any], Any]) -> Any:
    """Return the longest output that an operator can give, on the CPU.

    Args:
        func: the operator.
        args: its arguments.
        kwargs: the named ones.
        known: returns the values of a fake tensor; None: nobody has them.
    """
    like = _different if "unique" in func.__name__ else _ones
    real_args, real_kwargs = pytree.tree_map_only(
        FakeTensor, lambda each: like(each) if known(each) is None else known(each), (args, kwargs)
    )
    return func(*real_args, **real_kwargs)


def said_of(name: str) -> str:
    """Return what was assumed of an operator."""
    if name in _WITHOUT_LARGEST:
        return f"the size that {name} gives has no bound: its values are taken to be 1"
    return f"{name} is taken to select everything"


def _ones(tensor: torch.Tensor) -> torch.Tensor:
    return torch.ones((), dtype=tensor.dtype).expand(tensor.shape)


def _different(tensor: torch.Tensor) -> torch.Tensor:
    return torch.arange(tensor.numel()).to(tensor.dtype).view(tensor.shape)
