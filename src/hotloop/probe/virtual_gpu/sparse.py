"""Sparse tensors on the device: to all that computes with them a dense one, in a storage of the sparse one's size.

Products of sparse and dense tensors have the shapes, and save the operands, that those of two dense ones have.
"""

from __future__ import annotations

import math
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


def need_no_coalescing() -> None:
    """Let a tensor on the device that was sparse be coalesced: nothing is left of it that could be merged."""
    fake: Any = FakeTensor
    fake.coalesce = lambda tensor: tensor


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
