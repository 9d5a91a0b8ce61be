"""Whether what a model returns is made of a sigmoid: probabilities, or a loss of them."""

from __future__ import annotations

from typing import Any

NODES = 64
"""Of the autograd graph that are looked at from each output: an activation, a few views, a loss."""
_LEARNS = (
    "Addmm",
    "MmBackward",
    "Baddbmm",
    "Bmm",
    "Convolution",
    "Norm",
    "Rnn",
    "Embedding",
    "ScaledDotProduct",
)
"""Parts of names of nodes behind which a sigmoid is a gate within the model."""
_COMPILED = "CompiledFunction"
"""One node for all that torch.compile made."""


def ends_in_sigmoid(tensor: Any) -> bool | None:
    """Whether no learned operation stands between a sigmoid and this tensor; None: torch.compile hides it."""
    todo: list[Any] = [tensor.grad_fn]
    seen: set[Any] = set()
    hidden = False
    while todo and len(seen) < NODES:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name()
        if name.startswith("SigmoidBackward"):
            return True
        hidden |= name.startswith(_COMPILED)
        if not any(part in name for part in _LEARNS):
            todo.extend(parent for parent, _ in node.next_functions)
    return None if hidden else False
