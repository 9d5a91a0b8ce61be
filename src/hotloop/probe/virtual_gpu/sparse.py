"""Sparse tensors on the device: to all that computes with them a dense one, in a storage of the sparse one's size.

Products of sparse and dense tensors have the shapes, and save the operands, that those of two dense ones have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode


def stand_in(
    mode: FakeTensorMode, tensor: torch.Tensor, device: torch.device, dtype: torch.dtype
) -> FakeTensor:
    """Return a fake tensor in place of a sparse one, which is real, fake or a stand-in itself."""
    num_elements = math.ceil(_num_bytes(tensor) / dtype.itemsize)
    held = torch.empty(max(1, num_elements), dtype=dtype, device="meta")
    there = FakeTensor(mode, held.as_strided(tensor.shape, (0,) * tensor.dim()), device)
    there._hotloop_sparse = True
    return there


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether a tensor is sparse, or stands in for one."""
    return tensor.layout is not torch.strided or hasattr(tensor, "_hotloop_sparse")


def install_sparse() -> None:
    """Let stand-ins be coalesced, as nothing is left of them that could be merged, and be gradients of SparseAdam."""
    fake: Any = FakeTensor
    fake.coalesce = lambda tensor: tensor
    optimizers: Any = torch.optim
    optimizers.SparseAdam.step = _sparse_adam_step


def _sparse_adam_step(optimizer: torch.optim.SparseAdam, closure: Callable[[], Any] | None = None) -> Any:
    """Take the memory that a step takes: torch's own asks a gradient for its indices."""
    loss = None if closure is None else closure()
    for parameter in (each for group in optimizer.param_groups for each in group["params"]):
        if parameter.grad is None:
            continue
        state = optimizer.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        state["step"] += 1
        with torch.no_grad():
            _adam_temporaries(parameter, parameter.grad)
    return loss


def _adam_temporaries(parameter: torch.Tensor, gradient: torch.Tensor) -> None:
    """Compute on as many rows as the gradient has, as `torch.optim._functional.sparse_adam` does."""
    row = parameter.shape[1:]
    row_bytes = math.prod(row) * parameter.itemsize + torch.int64.itemsize
    grad = parameter.new_empty(gradient.untyped_storage().nbytes() // row_bytes, *row)  # coalesced: a copy
    old = torch.empty_like(grad)
    update = grad.sub(old).mul_(1)
    old_square = torch.empty_like(grad)
    square = grad.pow(2).sub_(old_square).mul_(1)
    change = update.add_(old).div_(square.add_(old_square).sqrt_().add_(1)).mul(-1)
    parameter[: len(change)].add_(change)


def _num_bytes(tensor: Any) -> int:
    if hasattr(tensor, "_hotloop_sparse"):
        return int(tensor.untyped_storage().nbytes())
    return sum(each.numel() * each.element_size() for each in _parts(tensor))


def _parts(tensor: Any) -> tuple[torch.Tensor, ...]:
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
