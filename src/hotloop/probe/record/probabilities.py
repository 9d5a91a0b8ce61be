"""Whether what a model returns is made of a sigmoid: probabilities, or a loss of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NODES = 32
"""Of the autograd graph that are looked at from each output: an activation, a few views, a loss."""
_JOINS = ("CatBackward", "StackBackward")
"""Nodes of several tensors behind which each may be one. Others weigh them: a sigmoid there is a gate, as a recurrent
cell's is, which is written out on a CPU."""
_WEIGHS = ("Mm", "Mv", "Bmm", "Dot", "Convolution")
"""Parts of names of nodes that weigh what they are given with numbers that are not learned."""
_COMPILED = "CompiledFunction"
"""One node for all that torch.compile made."""


def ends_in_sigmoid(output: Any) -> bool | None:
    """Whether nothing but views, reductions and losses stands between a sigmoid and some tensor of an output.

    None: torch.compile hides it.
    """
    ends = {_ends(tensor.grad_fn) for tensor in _tensors(output)}
    return True if True in ends else None if None in ends else False


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
        return
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    for part in parts:
        yield from _tensors(part)


def _ends(node: Any) -> bool | None:
    todo: list[Any] = [node]
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
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if (len(parents) == 1 or name.startswith(_JOINS)) and not any(part in name for part in _WEIGHS):
            todo.extend(parents)
    return None if hidden else False
