"""The activation of channels_last and channels_last_3d."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.program.containers import map_tensors
from hotloop.probe.activation.activation import Activation


class MemoryFormat(Activation):
    """Lays out convolution weights and inputs with the channels innermost.

    Args:
        dimensions: of the convolutions: 2 or 3.
    """

    def __init__(self, dimensions: int) -> None:
        self._rank = dimensions + 2
        self._converted = 0
        self._input_seen = False
        self._reason = "no training forward was seen"
        self._optimizers: set[int] = set()

    def on_torch(self) -> None:
        """Watch the optimizers: state that was loaded from a checkpoint has the layout of before."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(self._before_step)

    def on_root(self, module: Any) -> None:
        """Convert the weights in place: they stay the parameters that the optimizer knows."""
        weights = self._weights(module)
        if any(weight.is_shared() for weight in weights if weight.device.type == "cpu"):
            self._reason = "the parameters are shared between processes and were left alone"
            return
        if getattr(module, "gradient_as_bucket_view", False):
            # DDP's gradients stay views of the old layout; a fused step would then pair the wrong elements.
            self._reason = "gradients are views into DDP's buckets, whose layout is fixed"
            return
        for weight in weights:
            weight.data = self._laid_out(weight.data)
            if weight.grad is not None:
                weight.grad = self._laid_out(weight.grad)
        self._converted += len(weights)
        self._reason = f"{len(weights)} convolution weights, but no input of rank {self._rank} was seen"

    def _weights(self, module: Any) -> list[Any]:
        """Return the plain weights of convolutions; a parametrized one is computed, not kept."""
        from torch.nn.modules.conv import _ConvNd

        convolutions = (part for part in module.modules() if isinstance(part, _ConvNd))
        weights = (part._parameters.get("weight") for part in convolutions)
        return [weight for weight in weights if weight is not None and weight.dim() == self._rank]

    def _laid_out(self, tensor: Any) -> Any:
        import torch

        form = torch.channels_last if self._rank == 4 else torch.channels_last_3d
        return tensor.contiguous(memory_format=form)

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Return the arguments with every feature map laid out anew."""
        if not self._converted:
            return args, kwargs
        return map_tensors(args, self._input), map_tensors(kwargs, self._input)

    def _input(self, tensor: Any) -> Any:
        import torch

        if tensor.layout is not torch.strided or tensor.dim() != self._rank or not tensor.is_floating_point():
            return tensor
        self._input_seen = True
        return self._laid_out(tensor)

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Return the output with feature maps contiguous again."""
        return map_tensors(output, self._output) if self._converted else output

    def _output(self, tensor: Any) -> Any:
        import torch

        if tensor.layout is torch.strided and tensor.dim() == self._rank:
            return tensor.contiguous()
        return tensor

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Bring an optimizer's state to the layout of its parameters, before its first step with us."""
        if id(optimizer) in self._optimizers:
            return
        self._optimizers.add(id(optimizer))
        for parameter, state in optimizer.state.items():
            for name, value in state.items():
                like = getattr(value, "shape", None) == parameter.shape and parameter.dim() == self._rank
                if like and value.stride() != parameter.stride():
                    state[name] = _like(value, parameter)

    def effect(self) -> tuple[bool, str]:
        """Return whether weights and inputs have the layout."""
        if self._converted and self._input_seen:
            return True, f"{self._converted} convolution weights and the inputs are channels-last"
        return False, self._reason


def _like(value: Any, parameter: Any) -> Any:
    """Return the values in the strides of the parameter."""
    import torch

    laid_out = torch.empty_like(parameter, dtype=value.dtype, device=value.device, requires_grad=False)
    return laid_out.copy_(value)
