"""Ways by which a backward may come through a forward beside its outputs."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.program.containers import tensors_in

_OURS = "hotloop."
"""Hooks of ours keep nothing that they are given."""


def kept_by_hooks(root: Any) -> bool:
    """Whether somebody listens to the forward of a module: features of a layer are often taken so."""
    from torch.nn.modules import module as all_modules

    listening = [all_modules._global_forward_hooks, all_modules._global_forward_pre_hooks]
    for module in root.modules():
        listening += [module._forward_hooks, module._forward_pre_hooks]
    return any(not _is_ours(hook) for hooks in listening for hook in hooks.values())


def kept_in_attributes(root: Any) -> bool:
    """Whether a module holds a tensor that was computed with a graph: features, a loss beside the output."""
    return any(tensor.grad_fn is not None for module in root.modules() for tensor in tensors_in(vars(module)))


def _is_ours(hook: Any) -> bool:
    return (getattr(hook, "__module__", None) or "").startswith(_OURS)
