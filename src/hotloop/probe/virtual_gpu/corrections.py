"""Where fake tensors take another way than tensors on a device do."""

from __future__ import annotations

import copyreg
import functools
import math
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

MAX_FLASH_HEAD = 256
"""Elements of a head that the flash kernel takes (sdp_utils.cpp: check_head_dim_size_flash)."""

_SINGLE_KERNELS = ("silu_backward", "mish_backward")
"""Of native_functions.yaml, all that are composed on other devices and have kernels of their own on CPU and CUDA."""


class DeviceKernels:
    """Calls the kernels that torch would choose on the device.

    Args:
        capability: of the device; the flash kernel needs 8.0.
    """

    def __init__(self, capability: tuple[int, int]) -> None:
        self._has_flash = capability >= (8, 0)
        self.attention: str | None = None
        """flash, efficient or math, where one is asked for; None: as torch chooses."""
        self.is_used = False
        """The program has called torch's attention."""

    def install(self) -> None:
        """Take the place of torch's function; a recomputation in the backward must find it, too."""
        self._libraries = have_gru_cells(), have_single_kernels()
        functional: Any = torch.nn.functional
        original = functional.scaled_dot_product_attention

        @functools.wraps(original)
        def attend(*args: Any, **kwargs: Any) -> Any:
            return self._attend(*args, **kwargs) if _is_fake(args, kwargs) else original(*args, **kwargs)

        functional.scaled_dot_product_attention = attend
        torch._C._nn.scaled_dot_product_attention = attend

    def _attend(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if enable_gqa and key.shape[-3] != query.shape[-3]:
            times = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
        self.is_used = True
        kernel = self._kernel(query, attn_mask)
        if kernel == "flash":
            return self._flash(query, key, value, dropout_p, is_causal, scale)
        if kernel == "efficient":
            bias = _bias(attn_mask, query, key)
            needs = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
            return torch.ops.aten._scaled_dot_product_efficient_attention(
                query, key, value, bias, needs, dropout_p, is_causal, scale=scale
            )[0]
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale
        )[0]

    def _kernel(self, query: Any, mask: Any) -> str:
        if query.dim() != 4:
            return "math"
        if self.attention is not None:
            return self.attention
        half = query.dtype in (torch.float16, torch.bfloat16)
        if mask is None and half and self._has_flash and query.shape[-1] <= MAX_FLASH_HEAD:
            return "flash"
        return "efficient"

    def _flash(self, query: Any, key: Any, value: Any, dropout: float, causal: bool, scale: Any) -> Any:
        size = query.shape[-1]
        scale = scale if scale is not None else 1 / math.sqrt(size)
        if size % 8:
            padding = (0, 8 - size % 8)
            query, key, value = (torch.nn.functional.pad(each, padding) for each in (query, key, value))
        out = torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout, causal, scale=scale
        )[0]
        return out[..., :size]


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """Return a mask as the additive one that the efficient kernel takes."""
    if mask is None:
        return None
    shape = (*query.shape[:-1], key.shape[-2])
    if mask.dtype is torch.bool:
        mask = torch.where(mask, 0.0, float("-inf")).to(query.dtype)
    return mask.expand(shape)


def _is_fake(args: Any, kwargs: Any) -> bool:
    query = args[0] if args else kwargs.get("query")
    return isinstance(query, FakeTensor)


def have_gru_cells() -> torch.library.Library:
    """Return a library with shapes of the fused GRU cell, which torch lacks; it holds as long as it is kept."""
    library = torch.library.Library("aten", "IMPL")

    def cell(input_gates: Any, hidden_gates: Any, state: Any, *_: Any) -> Any:  # noqa: ARG001
        return torch.empty_like(state), state.new_empty(state.shape[0], 5 * state.shape[1])

    def backward(gradient: Any, workspace: Any, has_bias: bool) -> Any:  # noqa: ARG001
        gates = gradient.new_empty(gradient.shape[0], 3 * gradient.shape[1])
        bias = gradient.new_empty(3 * gradient.shape[1]) if has_bias else None
        again = torch.empty_like(bias) if bias is not None else None
        return gates, torch.empty_like(gates), torch.empty_like(gradient), bias, again

    library.impl("_thnn_fused_gru_cell", cell, "Meta")
    library.impl("_thnn_fused_gru_cell_backward", backward, "Meta")
    return library


def have_single_kernels() -> torch.library.Library:
    """Return a library by which torch knows that the device has one kernel for what it would compose of many.

    A build for the CPU alone takes such an operator apart before anybody sees it, and each part makes a temporary of
    its own. The kernels are never called: no tensor on the device has memory.
    """
    library = torch.library.Library("aten", "IMPL")
    for name in _SINGLE_KERNELS:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):
            library.impl(name, _never_called, "CUDA")
    return library


def _never_called(*_: Any) -> Any:
    raise NotImplementedError


def let_fake_parameters_be() -> None:
    """Have torch take fake parameters for parameters: exchanged in place by `.to()`, and updated with foreach."""
    from torch.optim import optimizer

    optimizer._foreach_supported_types.append(FakeTensor)
    torch.utils.swap_tensors = _swap
    torch.__future__.set_swap_module_params_on_conversion(True)


def let_data_be_moved() -> None:
    """Have `tensor.data = fake` make a tensor of the CPU a fake one; torch would leave it a shape without a device."""
    whole: Any = torch.Tensor
    original = whole.data

    def assign(tensor: Any, value: Any) -> None:
        if not isinstance(value, FakeTensor) or isinstance(tensor, FakeTensor):
            original.__set__(tensor, value)
            return
        other = value.detach()
        if isinstance(tensor, torch.nn.Parameter):
            other = torch.nn.Parameter(other, requires_grad=tensor.requires_grad)
        _swap(tensor, other)

    whole.data = property(original.__get__, assign, original.__delete__)


def _swap(one: Any, other: Any) -> None:
    """`torch.utils.swap_tensors`, for tensors that the fake mode holds weak references to."""
    held = [_in_slots(each) for each in (one, other)]
    one.__class__, other.__class__ = other.__class__, one.__class__
    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
    for each, values in zip((other, one), held, strict=True):
        for name, value in values.items():
            setattr(each, name, value)
    torch._C._swap_tensor_impl(one, other)


def _in_slots(tensor: Any) -> dict[str, Any]:
    """Return what a tensor holds in slots: a distributed one has its shard there."""
    names = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]  # torch's own way
    return {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}
