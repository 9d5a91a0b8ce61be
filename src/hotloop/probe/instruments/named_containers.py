"""The lists, dictionaries, deques and caches that a program gives names to: globals, attributes, variables."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import _lru_cache_wrapper
from types import FrameType
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames, Owner
from hotloop.probe.instruments.object_sizes import attributes

DEPTH = 3
"""How far into an object attributes are followed."""
MOST_KEYS = 64
"""Of a dictionary whose values are looked at: one of settings or logs, not one of data."""


class Place(NamedTuple):
    """What a container is called."""

    name: str
    path: str
    function: str


class NamedContainers:
    """Walks the names of a program; each container is told once, under the first name that it is met under.

    Args:
        frames: whose code it is.
        wanted: which containers are told.
    """

    def __init__(self, frames: Frames, wanted: Callable[[Any], bool] | None = None) -> None:
        self._frames = frames
        self._wanted = wanted or is_container
        self._seen: set[int] = set()

    def of_modules(self) -> Iterator[tuple[Place, Any]]:
        """Yield those that globals of the program name, and attributes of their objects."""
        for module in list(sys.modules.values()):
            file = _file(module)
            if file is not None and self._frames.is_users(file):
                yield from self._within(vars(module), Place("", file, "<module>"), DEPTH)

    def of_variables(self, frame: FrameType | None) -> Iterator[tuple[Place, Any]]:
        """Yield those that variables name, in the program's functions that a frame is under.

        Before Python 3.13 asking a frame for its variables makes it keep them: only where it is needed.
        """
        while frame is not None:
            if self._frames.owner(frame) is Owner.USER:
                at = Place("", frame.f_code.co_filename, frame.f_code.co_name)
                yield from self._within(frame.f_locals, at, DEPTH)
            frame = frame.f_back

    def of_object(self, value: Any) -> Iterator[tuple[Place, Any]]:
        """Yield those that attributes of an object name, whoever wrote its class."""
        yield from self._of_attributes(value, DEPTH)
        yield from self._of_class(type(value), DEPTH)

    def _within(self, named: Mapping[str, Any], at: Place, depth: int) -> Iterator[tuple[Place, Any]]:
        for name, value in list(named.items()):
            place = at._replace(name=f"{at.name}{name}")
            if self._wanted(value):
                yield from self._once(place, value)
                yield from self._in_container(place, value, depth)
            elif type(value) is _lru_cache_wrapper:
                yield from self._of_cache(place, value)
            elif isinstance(value, type):
                if depth and self._is_users(value):
                    yield from self._of_class(value, depth - 1)
            elif depth and self._is_followed(type(value)):
                yield from self._of_attributes(value, depth - 1)

    def _once(self, place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
        if id(value) not in self._seen:
            self._seen.add(id(value))
            yield place, value

    def _in_container(self, place: Place, value: Any, depth: int) -> Iterator[tuple[Place, Any]]:
        """Yield those that a small dictionary names, and containers that objects in a small one have."""
        if not issubclass(type(value), dict | list | deque) or len(value) > MOST_KEYS:
            return
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(pairs):
            if isinstance(key, str) and self._wanted(inner):
                yield from self._once(place._replace(name=f"{place.name}[{key!r}]"), inner)
            elif depth and self._is_followed(type(inner)):
                every = self._of_attributes(inner, depth - 1)
                yield from (pair for pair in every if is_container(pair[1]))

    def _of_cache(self, place: Place, cache: Any) -> Iterator[tuple[Place, Any]]:
        """Yield the dictionary behind `functools.cache`: nothing names it."""
        for inner in gc.get_referents(cache):
            if type(inner) is dict and inner is not cache.__dict__:
                yield from self._once(place, inner)

    def _of_attributes(self, value: Any, depth: int) -> Iterator[tuple[Place, Any]]:
        if id(value) not in self._seen:
            self._seen.add(id(value))
            yield from self._within(_own(value), _owner("self.", type(value)), depth)

    def _of_class(self, cls: type, depth: int) -> Iterator[tuple[Place, Any]]:
        if id(cls) not in self._seen:
            self._seen.add(id(cls))
            yield from self._within(vars(cls), _owner("", cls), depth)

    def _is_followed(self, cls: type) -> bool:
        """Whether its attributes are the program's affair: a class of its own, or a data set of a library's."""
        of_torch = str(cls.__module__).startswith("torch.utils.data") and hasattr(cls, "__getitem__")
        return of_torch or self._is_users(cls)

    def _is_users(self, cls: type) -> bool:
        path = _file(sys.modules.get(cls.__module__))
        return path is not None and self._frames.is_users(path)


def is_container(value: Any) -> bool:
    """Whether it is a list, a dictionary or a deque, one that has no bound, or of a class made of these."""
    kind = type(value)  # a proxy's `__class__` may be anything
    return issubclass(kind, list | dict) or (issubclass(kind, deque) and value.maxlen is None)


def _own(value: Any) -> dict[str, Any]:
    """Return an object's attributes without what torch keeps in each module; parts of a module as attributes."""
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(type(value), torch.nn.Module):
        return attributes(value)
    torchs, every = torch.nn.Module().__dict__, value.__dict__
    return {**{key: one for key, one in every.items() if key not in torchs}, **every.get("_modules", {})}


def _owner(prefix: str, cls: type) -> Place:
    return Place(prefix, _file(sys.modules.get(cls.__module__)) or "", cls.__name__)


def _file(module: Any) -> str | None:
    """Return a module's file; Python takes the name from the program's own when it has ended, but not its loader."""
    found = getattr(module, "__file__", None) or getattr(getattr(module, "__loader__", None), "path", None)
    return found if isinstance(found, str) else None
