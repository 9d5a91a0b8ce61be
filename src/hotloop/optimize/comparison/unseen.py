"""Checkpointed blocks keep count of what is saved for the backward pass: a comparison must not be seen by them."""

from __future__ import annotations

from typing import Any


def unseen() -> Any:
    """Return a context in which tensors are saved for the backward pass past the program's own hooks.

    Within a checkpointed block each saved tensor is counted, and its second forward has to save as many.
    """
    import torch

    return torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)


def is_kept() -> bool:
    """Whether somebody keeps what is saved now: a checkpointed block, whose second forward has to be like its first."""
    import torch

    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def ends_a_recomputation(error: Exception) -> bool:
    """Whether an exception is torch's own way to end a block's second forward, once it has saved enough."""
    return type(error).__name__ == "_StopRecomputationError"
