"""How many floating-point operations a step has: every product is seen once, with its shapes, for one step."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from hotloop.probe.instruments.dispatch_mode import questions, remove_mode
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
        remove_mode(self._mode)
        return {"products": list(self._mode.counted.values()), "unknown": sorted(self._mode.unknown)}

    def after_fork(self) -> None:
        """In a forked child nothing is counted."""
        remove_mode(self._mode)


def _counter() -> Any:
    """Return the mode; its class is made here since torch must not be imported with this module."""
    from torch import Tensor
    from torch._ops import HigherOrderOperator
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    formulas: dict[Any, Formula] = {**flop_registry, **_recurrent()}
    asked = questions()

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
            if func in asked:
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
