"""What is computed for a comparison is not the program's: whoever keeps its saved tensors does not see these."""

from __future__ import annotations

from typing import Any


def unseen() -> Any:
    """Return a context in which tensors are saved for the backward pass past the program's own hooks.

    Within a checkpointed block each saved tensor is counted, and its second forward has to save as many.
    """
    import torch

    return torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
