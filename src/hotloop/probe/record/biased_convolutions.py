"""Convolutions whose bias a batch norm may take away again."""

from __future__ import annotations

from typing import Any

DIMENSIONS = ("1d", "2d", "3d")


def biased_before_norm(root: Any) -> int:
    """Return how many convolutions have a bias that is learned, and batch norm of their width registered after them.

    What follows what is known for sure when the model has run: this says where it is worth looking.
    """
    widths: dict[str, list[int]] = {dim: [] for dim in DIMENSIONS}
    """Of the convolutions that wait for their batch norm."""
    num = 0
    for module in root.modules():
        name, dim = type(module).__name__, type(module).__name__[-2:]
        if name == f"Conv{dim}" and dim in widths and getattr(module.bias, "requires_grad", False):
            widths[dim].append(module.out_channels)
        elif name == f"BatchNorm{dim}" and module.num_features in widths.get(dim, ()):
            widths[dim].remove(module.num_features)
            num += 1
    return num
