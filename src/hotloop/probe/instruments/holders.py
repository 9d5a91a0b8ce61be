"""Holders: the program's lists and dictionaries that gain tensors or arrays with every step."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames, Owner
from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.probe import Probe

_KINDS = frozenset({list, dict, deque})
MOST_STEPS_GROW = 0.5
"""Of the steps: what is filled now and then is no leak of the loop."""
_DEPTH = 3
"""How far into an object attributes are followed, and into an entry tensors (`history.append({"logits": logits})`)."""


class Place(NamedTuple):
    """What a container is called."""

    name: str
    path: str
    function: str


class Holders(Instrument):
    """Compares the lengths of the containers that the user's code names, at the beginning and the end of a window.

    Args:
        probe: the probe.
    """

    min_steps = 4
    max_steps = 50
    seconds = 1.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._frames = Frames()
        self._before: dict[Place, tuple[int, int]] = {}
        self._steps = 0

    def start(self) -> None:
        """Note how long each container is."""
        self._before = {place: (id(one), len(one)) for place, one in self._containers()}

    def step(self) -> None:
        """Count."""
        self._steps += 1

    def stop(self) -> Any:
        """Return the containers that grew by tensors or arrays, and what they gained in a step."""
        found: dict[int, dict[str, Any]] = {}
        for place, one in self._containers():
            number, length = self._before.get(place, (0, 0))
            gained = (len(one) - length) / max(1, self._steps)
            if number == id(one) and gained >= MOST_STEPS_GROW and len(one) - length > 1:
                held = _tensors(_last(one), _DEPTH)
                if held:
                    found.setdefault(number, _described(place, one, gained, held))
        return list(found.values())

    def _containers(self) -> Iterator[tuple[Place, Any]]:
        """Yield the containers among variables of the user's functions on the stack, their globals, and attributes."""
        seen: set[int] = set()
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if self._frames.owner(frame) is Owner.USER:
                path, function = frame.f_code.co_filename, frame.f_code.co_name
                yield from self._within(dict(frame.f_locals), Place("", path, function), seen, _DEPTH)
            frame = frame.f_back
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self._frames.is_users(file):
                yield from self._within(dict(vars(module)), Place("", file, "<module>"), seen, _DEPTH)

    def _within(
        self, named: dict[str, Any], at: Place, seen: set[int], depth: int
    ) -> Iterator[tuple[Place, Any]]:
        for name, value in named.items():
            if type(value) in _KINDS:
                yield at._replace(name=f"{at.name}{name}"), value
                continue
            inside = self._attributes(value) if depth and id(value) not in seen else None
            if inside is not None:
                seen.add(id(value))
                cls = type(value)
                owner = Place("self.", sys.modules[cls.__module__].__file__ or "", cls.__name__)
                yield from self._within(inside, owner, seen, depth - 1)

    def _attributes(self, value: Any) -> dict[str, Any] | None:
        """Return the attributes of an object of the user's classes; None: it is none."""
        path = getattr(sys.modules.get(type(value).__module__), "__file__", None)
        if path is None or not self._frames.is_users(path):
            return None
        attributes = getattr(value, "__dict__", None)
        return dict(attributes) if isinstance(attributes, dict) else None


def _described(place: Place, one: Any, per_step: float, held: list[Any]) -> dict[str, Any]:
    return {
        **place._asdict(),
        "kind": type(one).__name__,
        "per_step": per_step,
        "bytes_per_step": per_step * sum(int(each.nbytes) for each in held),
        "keeps_graph": any(getattr(each, "grad_fn", None) is not None for each in held),
    }


def _last(one: Any) -> Any:
    return next(reversed(one.values())) if type(one) is dict else one[-1]


def _tensors(value: Any, depth: int) -> list[Any]:
    """Return the tensors and arrays of an entry."""
    if type(value).__name__ in {"Tensor", "Parameter", "ndarray"} and hasattr(value, "nbytes"):
        return [value]
    if depth and isinstance(value, dict):
        return [each for inner in value.values() for each in _tensors(inner, depth - 1)]
    if depth and isinstance(value, list | tuple):
        return [each for inner in value for each in _tensors(inner, depth - 1)]
    return []
