"""Which linear layers the matrix units for 8 bits take, where a layer of torchao's stands in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.model.quantities import counted

MULTIPLE = 16
"""Of rows and columns, for the matrix units."""
FITS = f"layer.in_features % {MULTIPLE} == layer.out_features % {MULTIPLE} == 0"
"""The same in a program's own source."""


def say(kinds: Sequence[str], there: str, how: str) -> tuple[bool, str]:
    """Return how many layers were exchanged, as the evidence of an activation.

    Args:
        kinds: the classes' names of all layers that were seen.
        there: the class of torchao's.
        how: what they compute in.
    """
    num, num_left = kinds.count(there), kinds.count("Linear")
    if not num:
        return False, f"none of {counted(num_left, 'linear layer')} can compute in {how}"
    left = f", {num_left} left" if num_left else ""
    return True, f"{counted(num, 'linear layer')} in {how}{left}"


def takes(layer: Any, name: str) -> bool:
    """Return whether a layer is exchanged: not the whole model, which nobody holds by an attribute."""
    import torch

    plain = type(layer) is torch.nn.Linear and bool(name)
    return plain and fits(layer.in_features, layer.out_features) and not _is_hooked(layer)


def fits(in_features: int, out_features: int) -> bool:
    """Return whether the matrix units take a weight of this shape."""
    return in_features % MULTIPLE == 0 and out_features % MULTIPLE == 0


def _is_hooked(layer: Any) -> bool:
    """Return whether something is attached to a layer that a new one would not have."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks)
