"""What programs do with a tensor beside computing: format it, save it, load it again."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensor

BEFORE_CUDA = 15
"""Place among the ways to restore a storage: torch's own for a device has 20."""


def behave_like_tensors(when_imported: Callable[[str, Callable[[], None]], None]) -> None:
    """Have fake tensors formatted and pickled as others are; pickled they are a shape, whatever their size.

    Args:
        when_imported: calls a function after the first import of a module.
    """
    original = torch.Tensor.__format__

    @functools.wraps(original)
    def formatted(tensor: Any, specification: str) -> str:
        if isinstance(tensor, FakeTensor) and not tensor.dim():
            return format(tensor.item(), specification)
        said: str = original(tensor, specification)
        return said

    tensor: Any = torch.Tensor
    tensor.__format__ = formatted
    fake: Any = FakeTensor
    fake.__reduce_ex__ = _reduced
    for kind in (bool, int, float, complex, operator.index):
        setattr(fake, f"__{kind.__name__}__", _as_number(kind))
    torch.serialization.add_safe_globals([loaded])
    _load_onto_device()
    _give_addresses()
    when_imported("safetensors.torch", _write_no_safetensors)


def _as_number(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a conversion that asks the world: while `torch.tensor([loss, ...])` fills a tensor, torch asks no mode."""

    def number(tensor: Any) -> Any:
        with torch._C._PreserveDispatchKeyGuard():
            for key in (DispatchKey.Python, DispatchKey.PythonTLSSnapshot):
                torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
            return kind(tensor.item())

    return number


def _load_onto_device() -> None:
    """Load checkpoints for the device: storages stay on the CPU, and tensors are copied as the program would."""
    serialization: Any = torch.serialization
    original, asked = serialization.load, []

    def stay(storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        asked.append(location)
        return storage

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        asked.clear()
        found = original(*args, **kwargs)
        return pytree.tree_map(_onto_device, found) if asked else found

    storage: Any = torch.UntypedStorage
    storage.cuda = lambda each, *_, **__: stay(each, "cuda")  # as a `map_location` does
    serialization.register_package(BEFORE_CUDA, lambda _: None, stay)
    serialization.load = torch.load = load


def _onto_device(each: Any) -> Any:
    if isinstance(each, torch.nn.Module):
        return each.to("cuda")
    is_real = isinstance(each, torch.Tensor) and not isinstance(each, FakeTensor)
    return each.to("cuda") if is_real else each


def _give_addresses() -> None:
    """Let storages without memory be told apart by an address: libraries look for tied weights that way."""
    tensor: Any = torch.Tensor
    storage: Any = torch.UntypedStorage
    of_tensor, of_storage = tensor.data_ptr, storage.data_ptr

    @functools.wraps(of_tensor)
    def data_ptr(each: Any) -> int:
        if not isinstance(each, FakeTensor):
            return int(of_tensor(each))
        return int(each.untyped_storage()._cdata + each.storage_offset() * each.element_size())

    tensor.data_ptr = data_ptr
    storage.data_ptr = lambda each: each._cdata if each.device.type == "meta" else of_storage(each)


def _write_no_safetensors() -> None:
    """Write an empty file for a checkpoint of tensors that have no values; one of the host's is written as it is."""
    written: Any = sys.modules["safetensors.torch"]

    def without_values(original: Any) -> Any:
        @functools.wraps(original)
        def save(saved: Any, filename: Any, *args: Any, **kwargs: Any) -> None:
            tensors = saved.state_dict() if isinstance(saved, torch.nn.Module) else saved
            if not any(isinstance(each, FakeTensor) for each in tensors.values()):
                original(saved, filename, *args, **kwargs)
                return
            with open(filename, "wb"):
                pass

        return save

    for name in ("save_file", "save_model"):
        setattr(written, name, without_values(getattr(written, name)))


def _reduced(tensor: Any, _: int) -> tuple[Any, ...]:
    device = str(tensor.fake_device)
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    return loaded, (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
        device,
        tensor.requires_grad,
        is_parameter,
    )


def loaded(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    requires_grad: bool,
    is_parameter: bool,
) -> Any:
    """Return a tensor like the one that was saved, where it is to be; its values are nobody's: on the CPU, 1."""
    tensor = torch.empty_strided(shape, stride, dtype=dtype, device=_mapped(device))
    if not isinstance(tensor, FakeTensor):
        tensor.fill_(1)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def _mapped(device: str) -> Any:
    """Return where `torch.load` is told to put what was saved from a device."""
    where = torch.serialization._serialization_tls.map_location
    if not callable(where):
        return torch._utils._get_restore_location(device)
    placed = where(torch.UntypedStorage(0), device)
    return device if placed is None else placed.device
