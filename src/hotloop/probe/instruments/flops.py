"""How many floating-point operations a step has: every product is seen once, with its shapes, for one step."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.probe import Probe

Formula = Callable[..., int]


class Flops(Instrument):
    """The FLOPs of one step by torch's own formulas (`torch.utils.flop_counter`), and of recurrent layers."""

    min_steps = 1
    max_steps = 1
    seconds = 0.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._mode: Any = None

    def start(self) -> None:
        """Begin to count."""
        from torch.utils._python_dispatch import _push_mode

        self._mode = _counter()
        _push_mode(self._mode)

    def stop(self) -> Any:
        """Return each product's name, shapes, number and FLOPs."""
        _remove(self._mode)
        return {"products": list(self._mode.counted.values()), "unknown": sorted(self._mode.unknown)}

    def after_fork(self) -> None:
        """In a forked child nothing is counted."""
        _remove(self._mode)


def _remove(mode: Any) -> None:
    """Take the mode off the stack; a program may have entered one of its own above it."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

    if not any(each is mode for each in _get_current_dispatch_mode_stack()):
        return
    above = []
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for each in reversed(above):
        _push_mode(each)


def _counter() -> Any:
    """Return the mode; its class is made here since torch must not be imported with this module."""
    from torch import Tensor
    from torch._ops import HigherOrderOperator
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    formulas: dict[Any, Formula] = {**flop_registry, **_recurrent()}
    questions = _questions()

    class Counter(TorchDispatchMode):  # type: ignore[misc]
        """Sees every operator below autograd, and changes none."""

        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Let torch.compile compile all the same: a frame that it skipped would be an error under fullgraph."""
            return True

        def __init__(self) -> None:
            super().__init__()
            self.counted: dict[str, dict[str, Any]] = {}
            self.unknown: set[str] = set()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func in questions:
                return NotImplemented
            if isinstance(func, HigherOrderOperator):
                self.unknown.add(str(func))
                return func(*args, **kwargs)
            packet = func._overloadpacket
            if packet not in formulas and _is_composite(func):
                with self:
                    return func.decompose(*args, **kwargs)
            out = func(*args, **kwargs)
            if packet in formulas:
                self._count(packet, args, kwargs, out)
            return out

        def _count(self, packet: Any, args: Any, kwargs: Any, out: Any) -> None:
            name = f"aten::{packet.__name__}"
            try:
                flop = int(formulas[packet](*args, **kwargs, out_val=out))
            except Exception:  # a formula that does not fit these arguments must not reach the program
                self.unknown.add(name)
                return
            tensors = [each for each in args if isinstance(each, Tensor) and each.dim()]
            shapes = [list(each.shape) for each in tensors]
            dtype = str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
            row = self.counted.setdefault(
                repr((name, shapes, dtype)),
                {"name": name, "shapes": shapes, "dtype": dtype, "count": 0, "flop": 0},
            )
            row["count"] += 1
            row["flop"] += flop

    return Counter()


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
"""Of the operators that torch's own counter leaves alone; most have a twin for symbolic shapes."""


def _questions() -> frozenset[Any]:
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


def _is_composite(func: Any) -> bool:
    import torch

    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def _recurrent() -> dict[Any, Formula]:
    """Fused recurrent layers: a weight is used once for each time step and sample, 2 FLOPs; the backward twice that."""
    import torch

    def forward(inputs: Any, *weights: Any, **_: Any) -> int:
        steps = prod(inputs.shape[:-1])
        return sum(2 * steps * each.numel() for each in weights if _is_matrix(each))

    def cudnn(inputs: Any, weights: Any, *_: Any, **__: Any) -> int:
        return forward(inputs, *weights)

    def backward(inputs: Any, *weights: Any, **_: Any) -> int:
        return 2 * forward(inputs, *weights[:4])

    def cudnn_backward(inputs: Any, weights: Any, *_: Any, **__: Any) -> int:
        return 2 * forward(inputs, *weights)

    def mkldnn(inputs: Any, *weights: Any, **_: Any) -> int:
        return forward(inputs, *weights[:4])

    known = {
        "mkldnn_rnn_layer": mkldnn,
        "mkldnn_rnn_layer_backward": backward,
        "_cudnn_rnn": cudnn,
        "_cudnn_rnn_backward": cudnn_backward,
    }
    aten = torch.ops.aten
    return {getattr(aten, name): formula for name, formula in known.items() if hasattr(aten, name)}


def _is_matrix(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 2
