"""Cross-entropy of a last layer's output by chunks of rows; logits are computed again in the backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional


def num_chunks(classes: int, width: int) -> int:
    """Return in how many chunks logits are as large as the hidden states (Hsu et al. 2024, Liger Kernel)."""
    return -(-classes // width)


def chunked(
    hidden: Any, weight: Any, bias: Any, logits: Any, target: Any, ignore_index: int, reduction: str
) -> Any:
    """Return the loss, as a function of the last layer's input and parameters.

    Args:
        hidden: N x D, what the layer was given.
        weight: C x D.
        bias: C, or None.
        logits: N x C, what it returned; they are not kept.
        target: N class indices.
        ignore_index: of rows that do not count.
        reduction: mean or sum.
    """
    total = _Chunked.apply(hidden, weight, bias, logits.detach(), target, ignore_index)
    if reduction == "mean":
        total = total / (target != ignore_index).sum()
    # Autocast computes the plain loss in float32; without it the loss has the logits' type.
    return total if torch.is_autocast_enabled(logits.device.type) else total.to(logits.dtype)


def _wide(tensor: Any) -> Any:
    return tensor if tensor.dtype is torch.float64 else tensor.float()


class _Chunked(torch.autograd.Function):  # type: ignore[misc]
    """The sum of the rows' losses."""

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, bias: Any, logits: Any, target: Any, ignored: int) -> Any:
        num = num_chunks(*weight.shape)
        total = _wide(logits.new_zeros(()))
        for rows, wanted in zip(logits.chunk(num), target.chunk(num), strict=True):
            total += functional.nll_loss(
                _wide(rows).log_softmax(-1), wanted, ignore_index=ignored, reduction="sum"
            )
        ctx.save_for_backward(hidden, weight, bias, target)
        ctx.ignored, ctx.num, ctx.dtype = ignored, num, logits.dtype
        return total

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError("the loss by chunks is differentiated once (create_graph=True)")
        hidden, weight, bias, target = ctx.saved_tensors
        # What autocast computed in: the layer ran in the type of its output.
        layer = weight.to(ctx.dtype)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        with torch.autocast(hidden.device.type, enabled=False):
            start = 0
            for rows, wanted in _chunks(hidden, target, ctx.num):
                part = rows.to(ctx.dtype)
                logits = functional.linear(part, layer, None if bias is None else bias.to(ctx.dtype))
                slope = _wide(logits).softmax(-1)
                counts = wanted != ctx.ignored
                slope[torch.arange(len(wanted), device=wanted.device), wanted.clamp(min=0)] -= 1
                slope = slope.mul_((counts * grad).unsqueeze(-1)).to(ctx.dtype)
                grad_hidden[start : start + len(rows)] = slope @ layer
                grad_weight += slope.T @ part
                if grad_bias is not None:
                    grad_bias += slope.sum(0)
                start += len(rows)
        return grad_hidden, grad_weight, grad_bias, None, None, None


def _chunks(hidden: Any, target: Any, num: int) -> Iterator[tuple[Any, Any]]:
    yield from zip(hidden.chunk(num), target.chunk(num), strict=True)
