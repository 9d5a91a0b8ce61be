"""How much memory Python objects take, by looking at a few of them."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

LOOKED_AT = 64
"""Entries of a container, evenly spaced: the others are taken to be like them."""
DEPTH = 3
PAGE_BYTES = 4096
HEADER_BYTES = 128
"""Of a tensor or an array, whose data lies elsewhere (80 to 120 bytes in CPython 3.12)."""
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_bytes(value: Any, depth: int = DEPTH, *, beside: Container[int] = ()) -> float:
    """Return what an object and those in it take, the data of tensors and arrays included.

    Args:
        value: a container, an object of a class of the program's, a tensor, an array, an image.
        depth: how far containers and attributes in it are followed.
        beside: addresses of tensors' memory that something else holds, too: a model's, which stays without this.
    """

    def own(one: Any) -> float:
        if has_data(one):
            return HEADER_BYTES if address(one) in beside else float(one.nbytes)
        return _size(one) + _image_bytes(one)

    return sum(_reached(value, depth, own).values())


def header_bytes(value: Any, depth: int = DEPTH) -> float:
    """Return what is copied for a process that only reads an object: the pages with reference counts."""

    def own(one: Any) -> float:
        if has_data(one) and not _is_of_objects(one):
            return float(HEADER_BYTES)
        return min(_size(one), PAGE_BYTES)

    return sum(_reached(value, depth, own).values())


def has_data(value: Any) -> bool:
    """Whether it is a tensor or an array."""
    return type(value).__name__ in {"Tensor", "Parameter", "ndarray"} and hasattr(value, "nbytes")


def entries(value: Any) -> Iterator[Any]:
    """Yield some entries of a container, evenly spaced; of a dictionary keys and values."""
    every = max(1, len(value) // LOOKED_AT)
    if isinstance(value, dict):
        for at, pair in enumerate(value.items()):
            if at // every >= LOOKED_AT:
                return
            if at % every == 0:
                yield pair
    else:
        yield from (value[at] for at in range(0, len(value), every)[:LOOKED_AT])


def is_sized(value: Any) -> bool:
    """Whether its entries can be looked at."""
    if has_data(value):
        return _is_of_objects(value) and int(value.ndim) == 1
    return isinstance(value, list | tuple | dict | deque)


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object's attributes and slots hold; of code, and of a model, nothing."""
    if issubclass(type(value), _CODE) or has_data(value) or _is_model(value):
        return {}
    found = getattr(value, "__dict__", None)
    named = dict(found) if type(found) is dict else {}
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            slot = vars(cls).get(name)
            if type(slot).__name__ == "member_descriptor":
                named.setdefault(name, getattr(value, name, None))
    return named


def _is_model(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), torch.nn.Module | torch.optim.Optimizer)


def _is_of_objects(value: Any) -> bool:
    return bool(getattr(getattr(value, "dtype", None), "kind", None) == "O")


def _reached(value: Any, depth: int, own: Callable[[Any], float]) -> dict[int, float]:
    """Return the bytes of an object and of those in it, by identity: what several entries share counts once."""
    sizes = {id(value): own(value)}
    if not depth:
        return sizes
    if is_sized(value):
        some = list(entries(value)) if len(value) else []
        # A pair of a dictionary is made for this look: of it, key and value count alone.
        parts = [pair for each in some for pair in each] if isinstance(value, dict) else some
        _add_like(sizes, [_reached(part, depth - 1, own) for part in parts], len(value) / max(1, len(some)))
    for part in attributes(value).values():
        for key, size in _reached(part, depth - 1, own).items():
            sizes.setdefault(key, size)
    return sizes


def _add_like(sizes: dict[int, float], parts: list[dict[int, float]], scale: float) -> None:
    """Add some entries, each of which stands for others like it; what two of them share is there once."""
    times = Counter(key for part in parts for key in part)
    for part in parts:
        for key, size in part.items():
            sizes.setdefault(key, size if times[key] > 1 else scale * size)


def address(value: Any) -> int:
    """Return where a tensor's memory is; 0: it has none of its own, or it is an array."""
    storage = getattr(value, "untyped_storage", None)
    try:
        return int(storage().data_ptr()) if storage is not None else 0
    except Exception:  # tensor subclasses answer as they like
        return 0


def _image_bytes(value: Any) -> float:
    """Return the pixels of an image of PIL, which its size in Python leaves out."""
    if type(value).__module__.partition(".")[0] != "PIL" or not hasattr(value, "getbands"):
        return 0.0
    width, height = value.size
    wide = 4 if value.mode in ("I", "F") else 1
    return float(width * height * wide * len(value.getbands()))


def _size(value: Any) -> float:
    try:
        return float(sys.getsizeof(value))
    except Exception:  # a `__sizeof__` of the program's
        return 0.0
