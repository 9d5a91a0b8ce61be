"""The calls that the call-site instrument watches: where they are found, and what each one does.

A call is judged after it returned, by its arguments and its result: `.to()` that had nothing to do is no copy, and an
index is a synchronization only where its size depends on values.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

SYNC, COPY, CREATE = "sync", "copy", "create"

Judge = Callable[[tuple[Any, ...], dict[str, Any], Any], str | None]
"""Of arguments, keywords and result: what the call did; None: nothing that counts."""


class Watched(NamedTuple):
    """One call."""

    module: str
    """Where its owner is found."""
    owner: str
    """A class in it; empty: the module itself."""
    name: str
    says: str
    """As a reader writes it."""
    judge: Judge
    device: str | None = None
    """Where it waits; None: its tensors tell."""
    named: Callable[[tuple[Any, ...]], str] | None = None
    """What a reader writes for these arguments; None: `says`."""

    def place(self) -> Any:
        """Return the object that has it as an attribute."""
        module = importlib.import_module(self.module)
        return getattr(module, self.owner) if self.owner else module


def _always(kind: str) -> Judge:
    return lambda _args, _kwargs, _result: kind


def _moved(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001 - a judge
    """A copy from a device to the host waits for it."""
    source, target = args[0].device.type, result.device.type
    return SYNC if source != "cpu" and target == "cpu" else COPY


def _copied_across(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001
    source = args[1] if len(args) > 1 else kwargs.get("src")
    if not isinstance(source, torch.Tensor) or source.device == args[0].device:
        return None
    return SYNC if args[0].device.type == "cpu" else COPY


def _has_mask(index: Any) -> bool:
    return any(one.dtype in (torch.bool, torch.uint8) for one in _tensors(index))


def _has_number(index: Any) -> bool:
    """Whether a number that lives in a tensor is part of an index: the result's place is a value."""
    return any(one.dim() == 0 and not one.is_floating_point() for one in _tensors(index))


def _tensors(index: Any) -> list[torch.Tensor]:
    return [one for one in (index if isinstance(index, tuple) else (index,)) if isinstance(one, torch.Tensor)]


def _index(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001 - a judge
    return SYNC if _has_mask(args[1]) or _has_number(args[1]) else None


def _named_index(args: tuple[Any, ...]) -> str:
    return "tensor[mask]" if _has_mask(args[1]) else "tensor[number in a tensor]"


def _assign(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001 - a judge
    """A number written through a mask is a fill, which needs no sizes."""
    value = args[2]
    single = not isinstance(value, torch.Tensor) or value.numel() == 1
    return SYNC if (_has_mask(args[1]) or _has_number(args[1])) and not single else None


def _one_argument(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001
    return SYNC if len(args) + len(kwargs) == 1 else None


def _counted_repeats(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats", args[0])
    return SYNC if isinstance(repeats, torch.Tensor) and kwargs.get("output_size") is None else None


def _unknown_classes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str | None:  # noqa: ARG001
    return SYNC if (args[1] if len(args) > 1 else kwargs.get("num_classes", -1)) == -1 else None


_METHODS = {
    "item": ".item()", "tolist": ".tolist()", "numpy": ".numpy()", "cpu": ".cpu()", "__bool__": "bool(tensor)",
    "__float__": "float(tensor)", "__int__": "int(tensor)", "__index__": "tensor as an index",
    "__complex__": "complex(tensor)", "__repr__": "print(tensor)", "__format__": "format(tensor)",
    "__array__": "numpy.asarray(tensor)", "__contains__": "in tensor", "nonzero": ".nonzero()",
    "masked_select": ".masked_select()", "unique": ".unique()", "unique_consecutive": ".unique_consecutive()",
    "argwhere": ".argwhere()", "equal": ".equal()", "allclose": ".allclose()", "is_nonzero": ".is_nonzero()",
    "bincount": ".bincount()",
}  # fmt: skip
_FUNCTIONS = (
    "nonzero", "masked_select", "unique", "unique_consecutive", "argwhere", "equal", "allclose", "is_nonzero",
    "bincount",
)  # fmt: skip
_WAITS = (
    ("torch.cuda", "", "synchronize"), ("torch.cuda", "", "empty_cache"), ("torch.cuda", "Event", "synchronize"),
    ("torch.cuda", "Stream", "synchronize"), ("torch.accelerator", "", "synchronize"),
    ("torch.mps", "", "synchronize"), ("torch.xpu", "", "synchronize"), ("torch.cpu", "", "synchronize"),
)  # fmt: skip
_MAKERS = (
    "zeros", "ones", "empty", "full", "eye", "arange", "linspace", "logspace", "rand", "randn", "randint",
    "randperm", "normal", "tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor",
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like",
)  # fmt: skip
_MAKING_METHODS = ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty")


def methods() -> Iterator[Watched]:
    """Yield what is watched on torch.Tensor."""
    for name, says in _METHODS.items():
        yield Watched("torch", "Tensor", name, says, _always(SYNC))
    yield Watched("torch", "Tensor", "__getitem__", "tensor[mask]", _index, named=_named_index)
    yield Watched(
        "torch", "Tensor", "__setitem__", "tensor[mask] = tensor", _assign,
        named=lambda args: f"{_named_index(args)} = tensor",
    )  # fmt: skip
    yield Watched("torch", "Tensor", "repeat_interleave", ".repeat_interleave()", _counted_repeats)
    yield Watched("torch", "Tensor", "to", ".to()", _moved)
    yield Watched("torch", "Tensor", "cuda", ".cuda()", _moved)
    yield Watched("torch", "Tensor", "pin_memory", ".pin_memory()", _always(COPY))
    yield Watched("torch", "Tensor", "copy_", ".copy_()", _copied_across)
    for name in _MAKING_METHODS:
        yield Watched("torch", "Tensor", name, f".{name}()", _always(CREATE))


def functions() -> Iterator[Watched]:
    """Yield what is watched in torch's modules."""
    for name in _FUNCTIONS:
        yield Watched("torch", "", name, f"torch.{name}", _always(SYNC))
    yield Watched("torch", "", "where", "torch.where(mask)", _one_argument)
    yield Watched("torch", "", "repeat_interleave", "torch.repeat_interleave", _counted_repeats)
    yield Watched("torch.nn.functional", "", "one_hot", "one_hot without num_classes", _unknown_classes)
    for module, owner, name in _WAITS:
        device = module.removeprefix("torch.")
        says = ".".join(part for part in (module, owner, name) if part)
        yield Watched(module, owner, name, says, _always(SYNC), device)
    for name in _MAKERS:
        yield Watched("torch", "", name, f"torch.{name}", _always(CREATE))
