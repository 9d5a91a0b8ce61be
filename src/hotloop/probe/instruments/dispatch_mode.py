"""What every mode of the dispatcher needs: to leave the stack of modes, and to leave some questions alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ASKED = (
    "is_contiguous",
    "is_strides_like_format",
    "is_non_overlapping_and_dense",
    "size",
    "stride",
    "storage_offset",
    "numel",
    "dim",
)
"""Of the operators that torch's own FLOP counter leaves alone; most have a twin for symbolic shapes."""


def operator_mode(run: Callable[[Any, Any, Any], Any]) -> Any:
    """Return a mode that sees every operator below autograd.

    Its class is made here, since torch must not be imported with this module.

    Args:
        run: called with operator, arguments and keywords in place of the operator; returns what the operator does.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    asked = questions()

    class Watching(TorchDispatchMode):  # type: ignore[misc]
        """Hands every operator on, questions about tensors left out."""

        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Let torch.compile compile all the same."""
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented if func in asked else run(func, args, kwargs or {})

    return Watching()


def remove_mode(mode: Any) -> None:
    """Take a mode off the stack; a program may have entered one of its own above it."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

    if not any(each is mode for each in _get_current_dispatch_mode_stack()):
        return
    above = []
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for each in reversed(above):
        _push_mode(each)


def questions() -> frozenset[Any]:
    """Return what fake and nested tensors are asked about themselves; to answer in their place ends the process."""
    import torch

    aten = torch.ops.aten
    packets = [getattr(aten, name) for one in _ASKED for name in (one, f"sym_{one}") if hasattr(aten, name)]
    overloads = [
        getattr(packet, name)
        for packet in packets
        for name in ("default", "memory_format")
        if name in packet.overloads()
    ]
    return frozenset([*overloads, torch.ops.prim.device.default, torch.ops.prim.layout.default])
