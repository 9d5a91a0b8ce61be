"""`torch.cuda.FloatTensor` and its like: a build for the CPU has their names and cannot make one."""

from __future__ import annotations

from typing import Any

import torch


class _TensorType(type):
    """The class of a type of tensors: calling it makes a tensor, which is no instance of a class of its own."""

    dtype: torch.dtype
    is_cuda = True

    def __call__(cls, *given: Any, **_: Any) -> Any:
        """Return a tensor of some sizes without values, or one with given values."""
        if all(isinstance(each, int) for each in given):
            return torch.empty(given or (0,), dtype=cls.dtype, device="cuda")
        if isinstance(given[0], torch.Size):
            return torch.empty(given[0], dtype=cls.dtype, device="cuda")
        return torch.as_tensor(given[0], dtype=cls.dtype).to("cuda")

    def __instancecheck__(cls, each: Any) -> bool:
        """Whether something is a tensor of this type on the device."""
        return isinstance(each, torch.Tensor) and each.is_cuda and each.dtype == cls.dtype


def have_legacy_types() -> None:
    """Have `torch.cuda.FloatTensor` and its like make tensors, and be the default type."""
    cuda: Any = torch.cuda
    whole: Any = torch
    for name in [name for name in dir(cuda) if name.endswith("Tensor")]:
        # `tensor.type(...)` in C++ goes by the full name of the class.
        made: Any = _TensorType(f"torch.cuda.{name}", (), {"dtype": getattr(whole, name).dtype})
        setattr(cuda, name, made)
    original = whole.set_default_tensor_type

    def set_default_tensor_type(wanted: Any) -> None:
        if isinstance(wanted, str) and wanted.startswith("torch.cuda."):
            wanted = getattr(cuda, wanted.rpartition(".")[2])
        if isinstance(wanted, _TensorType):
            torch.set_default_dtype(wanted.dtype)
            torch.set_default_device("cuda")
        else:
            torch.set_default_device(None)
            original(wanted)

    whole.set_default_tensor_type = set_default_tensor_type
