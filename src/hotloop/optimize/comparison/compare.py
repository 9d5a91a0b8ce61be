"""Does a module compute the same the other way? Outputs and gradients, on the inputs that it was just given.

Where nothing is trained, outputs alone: inference mode knows no gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.optimize.comparison.exchange import Exchange
from hotloop.optimize.comparison.unseen import unseen
from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.patterns.refusal import NotReached, NotThis

ROUNDINGS = 1000
"""Units in the last place that a tensor as a whole may differ by, relative to its size; a mask that is one off, or
another scale, differs by a share of the whole."""
LARGEST = 0.1
"""Gradients are compared to their own size, or this share of the largest: a key's bias has one of zero but for
rounding."""


class Comparison:
    """Runs a module both ways.

    Args:
        module: was just called.
        exchange: what is to be compared in it.
    """

    def __init__(self, module: Any, exchange: Exchange) -> None:
        self._module = module
        self._exchange = exchange

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        """Return the largest relative difference of outputs and gradients.

        Raises:
            NotThis: it is too large, or the module cannot be run again; with the reason.
        """
        _require_plain((*args, *kwargs.values()))
        counted = self._exchange.num_calls
        state = [(each, dict(vars(each))) for each in self._module.modules()]
        buffers = [(each._buffers, dict(each._buffers)) for each in self._module.modules()]
        try:
            _copy_buffers(self._module)
            with unseen():
                exact, _ = self._both(args, kwargs, exact=True)
            self._judge(exact, _dtype(self._module), "")
            with unseen():
                as_called, dtype = self._both(args, kwargs, exact=False)
            self._judge(as_called, dtype, " under the program's autocast")
        finally:
            self._exchange.put(False)
            self._exchange.num_calls = counted
            for each, attributes in state:
                vars(each).clear()
                vars(each).update(attributes)
            for own, tensors in buffers:
                own.update(tensors)
        return max(exact)

    def _judge(self, differences: Sequence[float], dtype: Any, how: str) -> None:
        import torch

        limit = ROUNDINGS * torch.finfo(dtype).eps
        if dtype is torch.float32 and _has_tf32(self._module):
            limit = ROUNDINGS * 2.0**-16  # TF32 keeps ten bits; errors of single products cancel
        for what, worst in (("outputs", differences[0]), ("gradients", max(differences))):
            if not worst <= min(limit, 0.1):  # what is no number does not agree
                raise NotThis(f"its {what} differ by {worst:.1e}{how}, more than rounding")

    def _both(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, exact: bool) -> tuple[list[float], Any]:
        """Return how far outputs and gradients are apart, and the dtype of the output."""
        self._exchange.put(False)
        outputs, own, own_rates = self._once(args, kwargs, exact=exact)
        self._exchange.put(True)
        calls = self._exchange.num_calls
        fused_outputs, fused, rates = self._once(args, kwargs, exact=exact)
        if self._exchange.counts and self._exchange.num_calls == calls:
            raise NotReached("was not reached in the module's forward")
        if sorted(own_rates) != sorted(rates):
            raise NotThis(f"drops {_percent(rates)} of the weights instead of {_percent(own_rates)}")
        for one, other in zip(outputs, fused_outputs, strict=True):
            if one.dtype is not other.dtype:
                raise NotThis(f"it gives {_dtype_name(other)} instead of {_dtype_name(one)}")
        sizes = [float(each.norm()) for each in own]
        floor = LARGEST * max(sizes, default=0.0)
        apart = [
            float((one - other).norm()) / max(size, floor, 1e-30)
            for one, other, size in zip(own, fused, sizes, strict=True)
        ]
        outputs_apart = max(
            (
                float((one.double() - other.double()).norm()) / max(float(one.double().norm()), 1e-30)
                for one, other in zip(outputs, fused_outputs, strict=True)
            ),
            default=0.0,
        )
        return [outputs_apart, *apart], outputs[0].dtype if outputs else _dtype(self._module)

    def _once(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, exact: bool
    ) -> tuple[list[Any], list[Any], list[float]]:
        """Return outputs, gradients, and the rates of dropout that were asked for."""
        import torch

        from hotloop.optimize.comparison.dropouts import Dropouts

        given, dtype = (args, kwargs), _dtype(self._module)
        learns = self._exchange.keeps_gradients and not torch.is_inference_mode_enabled()
        inputs: list[Any] = []

        def fresh(tensor: Any) -> Any:
            if not tensor.is_floating_point():
                return tensor.clone()
            copied = tensor.detach().clone().to(dtype if exact else tensor.dtype)
            inputs.append(copied.requires_grad_(learns))
            return copied

        args, kwargs = map_tensors(given, fresh)
        device = inputs[0].device.type if inputs else "cpu"
        amp = torch.autocast(device, enabled=False if exact else torch.is_autocast_enabled(device))
        with torch.set_grad_enabled(learns), amp, Dropouts() as dropouts:
            output = self._module.forward(*args, **kwargs)
        if not learns:
            outputs = [each.detach() for each in tensors_in(output) if each.is_floating_point()]
            return outputs, [], dropouts.rates
        made = [each for each in tensors_in(output) if each.requires_grad and each.is_floating_point()]
        learned = [parameter for parameter in self._module.parameters() if parameter.requires_grad]
        weights = [_cotangent(each) for each in made]
        wanted = [*inputs, *learned]
        with torch.autocast(device, enabled=False):  # a backward stands outside of autocast
            gradients = torch.autograd.grad(made, wanted, weights, allow_unused=True) if made else []
        doubles = [each.double() if each is not None else torch.zeros(()) for each in gradients]
        return [each.detach() for each in made], doubles, dropouts.rates


def _copy_buffers(module: Any) -> None:
    """Give a module copies of its buffers: the backward under way must find its own as its forward left them."""
    copies: dict[int, Any] = {}
    for each in module.modules():
        for name, buffer in each._buffers.items():
            if buffer is not None:
                each._buffers[name] = copies.setdefault(id(buffer), buffer.clone())


def _cotangent(output: Any) -> Any:
    """Return what an output's gradient is taken along: no two of its values alike, no random number used up."""
    import torch

    line = torch.arange(output.numel(), device=output.device, dtype=torch.float32)
    return torch.cos(line * 1.7).reshape(output.shape).to(output.dtype)


def _dtype(module: Any) -> Any:
    import torch

    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


def _dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _has_tf32(module: Any) -> bool:
    return any(parameter.is_cuda for parameter in module.parameters())


def _require_plain(values: Sequence[Any]) -> None:
    """Running a module again must not change what it is given: caches and the like."""
    import torch

    for value in values:
        if isinstance(value, (list, tuple)):
            _require_plain(list(value))
        elif isinstance(value, dict):
            _require_plain(list(value.values()))
        elif not (value is None or isinstance(value, (torch.Tensor, int, float, str, bool, torch.dtype))):
            raise NotThis(f"its module is given a {type(value).__name__}, which a second run might change")


def _percent(rates: Sequence[float]) -> str:
    return " and ".join(f"{rate:.0%}" for rate in sorted(rates)) or "none"
