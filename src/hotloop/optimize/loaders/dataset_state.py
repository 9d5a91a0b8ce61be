"""Everything that a data set holds, as one comparable value: whether it changed itself, or was changed."""

from __future__ import annotations

import random
import sys
from typing import Any

MAX_DEPTH = 4
MAX_ITEMS = 64
"""Longer containers are compared by identity and length."""


def state_of(dataset: Any) -> dict[str, object]:
    """Return what the data set holds by attribute path (`self.transform.p`), private generators' states included."""
    found: dict[str, object] = {}
    _walk(dataset, "self", found, set(), 0)
    return found


def changed(before: dict[str, object], after: dict[str, object]) -> tuple[str, ...]:
    """Return the attributes that differ between two states, the shortest path first."""
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return tuple(sorted(names, key=lambda name: (len(name), name)))


def _walk(value: Any, path: str, found: dict[str, object], seen: set[int], depth: int) -> None:
    if isinstance(value, (int, float, complex, str, bytes, type(None))):
        found[path] = value
        return
    generator = _generator_state(value)
    if generator is not None:
        found[path] = generator
        return
    found[path] = (type(value).__qualname__, id(value), _length(value), _version(value))
    if id(value) in seen or depth >= MAX_DEPTH:
        return
    seen.add(id(value))
    for name, part in _parts(value):
        _walk(part, f"{path}{name}", found, seen, depth + 1)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"[{key!r}]", part) for key, part in list(value.items())[:MAX_ITEMS]]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", part) for i, part in enumerate(value[:MAX_ITEMS])]
    if isinstance(value, type) or (callable(value) and not hasattr(value, "__dict__")):
        return []
    return [(f".{name}", part) for name, part in getattr(value, "__dict__", {}).items()]


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (list, tuple, dict, set, bytearray)) else None


def _version(value: Any) -> object:
    """A tensor counts its changes in place."""
    return getattr(value, "_version", None) if type(value).__module__.startswith("torch") else None


def _generator_state(value: Any) -> object:
    """The state of a generator of the data set's own; None: it is none."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if isinstance(value, random.Random):
        return hash(value.getstate())
    if torch is not None and isinstance(value, torch.Generator):
        return bytes(value.get_state().tolist())
    if numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState)):
        bits = value.bit_generator if isinstance(value, numpy.random.Generator) else value._bit_generator
        return repr(bits.state)
    return None
