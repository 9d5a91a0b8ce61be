"""The kernel, and the class whose forward calls it."""

from __future__ import annotations

import copyreg
import functools
from typing import Any

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # a CPU-only machine
    triton = None


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return x / sqrt(mean(x²) + eps) * weight over the last dimension."""
    if triton is None or not x.is_cuda:
        return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)
    return _RmsNorm.apply(x, weight, eps)


@functools.cache
def fused_class(own: type) -> Any:
    """Return a subclass of a program's RMSNorm with the kernel in its forward; made once for each class."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.weight, self.eps)

    return type(own.__name__, (own,), {"forward": forward, "__module__": own.__module__, "__reduce_ex__": _as(own)})


def _as(own: type) -> Any:
    """Pickle a module as one of its own class: whoever loads it needs nothing of this package."""

    def reduce(self: Any, protocol: int) -> Any:
        return copyreg._reconstructor, (own, object, None), dict(self.__dict__)

    return reduce


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        y, scale = torch.empty_like(rows), torch.empty(len(rows), device=x.device, dtype=torch.float32)
        _forward_kernel[(len(rows),)](
            rows, weight, y, scale, rows.shape[1], eps, BLOCK=triton.next_power_of_2(rows.shape[1])
        )
        ctx.save_for_backward(rows, weight, scale)
        return y.view(x.shape)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        rows, weight, scale = ctx.saved_tensors
        g = gradient.reshape(rows.shape).float()
        normed = rows.float() * scale[:, None]
        gw = g * weight.float()
        dx = scale[:, None] * (gw - normed * (gw * normed).mean(-1, keepdim=True))
        return dx.to(rows.dtype).view(gradient.shape), (g * normed).sum(0).to(weight.dtype), None


if triton is not None:

    @triton.jit
    def _forward_kernel(x, weight, y, scale, width, eps, BLOCK: tl.constexpr):  # noqa: N803
        row = tl.program_id(0)
        at = tl.arange(0, BLOCK)
        inside = at < width
        values = tl.load(x + row * width + at, mask=inside, other=0.0).to(tl.float32)
        factor = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / width + eps)
        weights = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * width + at, values * factor * weights, mask=inside)
        tl.store(scale + row, factor)
