"""Whether something reads the program right now instead of running it: hook points do nothing then.

A tracer writes down what is done with its values: asking a proxy for its shape puts an operation into its graph, and
comparing a symbolic size puts a guard there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def reader() -> Callable[[], bool]:
    """Return what says whether a tracer is at work: of TorchScript, fx, `make_fx`, `torch.export`, torch.compile."""
    import torch
    from torch import compiler
    from torch.fx import _symbolic_trace as fx

    jit: Callable[[], Any] = torch._C._get_tracing_state
    modes: Callable[[Any], Any] = torch._C._get_dispatch_mode
    kinds = torch._C._TorchDispatchModeKey
    fake, proxy = kinds.FAKE, kinds.PROXY

    def is_traced() -> bool:
        return (
            jit() is not None
            or fx._is_fx_tracing_flag
            or compiler._is_compiling_flag
            or modes(fake) is not None
            or modes(proxy) is not None
        )

    return is_traced


def transforms() -> Callable[[], bool]:
    """Return what says whether a transform of `torch.func` is at work: its values are not what they seem."""
    from torch._C import _functorch

    depth = _functorch.maybe_current_level
    return lambda: depth() is not None
