"""A program with a decomposition in its loss: it is read, not run."""

from __future__ import annotations

import torch


def penalty(model: torch.nn.Linear) -> torch.Tensor:
    """Return the largest singular value."""
    values: torch.Tensor = torch.linalg.svdvals(model.weight)
    return values[0]


def loss(model: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Return what is minimized."""
    return model(x).norm() + penalty(model)
