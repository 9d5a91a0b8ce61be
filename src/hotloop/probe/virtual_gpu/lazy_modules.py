"""Modules that learn their sizes in their first forward (`LazyLinear`): they move to the device after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

_MOVES = "_hotloop_moves"


def let_lazy_modules_wait() -> None:
    """Move a lazy module once it has sizes: its parameters could not be exchanged for fake ones before."""
    modules: Any = nn.Module
    lazy: Any = LazyModuleMixin
    apply, infer = modules._apply, lazy._infer_parameters

    def apply_later(module: Any, function: Callable[[Any], Any], *args: Any, **kwargs: Any) -> Any:
        if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
            module.__dict__.setdefault(_MOVES, []).append(function)
            return module
        return apply(module, function, *args, **kwargs)

    def infer_and_move(hook: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        infer(hook, module, *args, **kwargs)
        for function in module.__dict__.pop(_MOVES, ()):
            module._apply(function)

    modules._apply = apply_later
    lazy._infer_parameters = infer_and_move
