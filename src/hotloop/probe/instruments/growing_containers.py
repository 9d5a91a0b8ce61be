"""The program's lists and dictionaries that gain tensors or arrays with every step."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames, Owner
from hotloop.probe.instruments.growing_hooks import GrowingHooks
from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.probe import Probe

MAX_OBJECTS = 5_000_000
"""A pass over so many takes a second or two."""
MOST_STEPS_GROW = 0.5
"""Of the steps: what is filled now and then is no leak of the loop."""
_DEPTH = 3
"""How far into an object attributes are followed, and into an entry tensors (`history.append({"logits": logits})`)."""


class Place(NamedTuple):
    """What a container is called."""

    name: str
    path: str
    function: str


class _Known(NamedTuple):
    """A container at the beginning: another one that came to lie in its place has other entries."""

    length: int
    first: int
    last: int


class GrowingContainers(Instrument):
    """Compares the lengths of all containers at the beginning and at the end of a window, and finds names for them.

    Args:
        probe: the probe.
    """

    min_steps = 4
    max_steps = 50
    seconds = 1.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._frames = Frames()
        self._before: dict[int, _Known] = {}
        self._hooks = GrowingHooks(self._frames)
        self._steps = 0

    def start(self) -> None:
        """Note how long each container is.

        Raises:
            Unavailable: there are too many objects to go through.
        """
        objects = gc.get_objects()
        if len(objects) > MAX_OBJECTS:
            raise Unavailable(f"the program holds {len(objects):,} objects, too many to go through")
        self._before = {id(one): _known(one, len(one)) for one in objects if _is_container(one) and len(one)}
        self._hooks.start(objects)

    def step(self) -> None:
        """Count."""
        self._steps += 1

    def stop(self) -> Any:
        """Return the containers that grew by tensors or arrays, what they gained in a step, and hooks that piled up."""
        return {"containers": self._containers(), "hooks": self._hooks.grown(gc.get_objects(), self._steps)}

    def after_fork(self) -> None:
        """Put everything back in a child."""
        self._hooks.remove()

    def _containers(self) -> list[dict[str, Any]]:
        grown = {id(one): (one, gained) for one, gained in self._grown()}
        self._before = {}
        found = []
        for place, number in self._places(set(grown)):
            one, gained = grown.pop(number)
            found.append(_described(place, one, gained, _tensors(_last(one), _DEPTH)))
            if not grown:
                break
        return found

    def _grown(self) -> Iterator[tuple[Any, float]]:
        for one in gc.get_objects():
            before = self._before.get(id(one)) if _is_container(one) else None
            if before is None or len(one) - before.length < 2:
                continue
            gained = (len(one) - before.length) / max(1, self._steps)
            same = _known(one, before.length) == before
            if same and gained >= MOST_STEPS_GROW and _tensors(_last(one), _DEPTH):
                yield one, gained

    def _places(self, wanted: set[int]) -> Iterator[tuple[Place, int]]:
        """Yield names for containers: of the user's globals and attributes, then of variables on the stack."""
        if not wanted:
            return
        seen: set[int] = set()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self._frames.is_users(file):
                yield from self._within(vars(module), Place("", file, "<module>"), wanted, seen, _DEPTH)
        # Before Python 3.13 asking a frame for its variables makes it keep them: only where something leaks anyway.
        frame: FrameType | None = sys._getframe()
        while frame is not None and wanted:
            if self._frames.owner(frame) is Owner.USER:
                at = Place("", frame.f_code.co_filename, frame.f_code.co_name)
                yield from self._within(frame.f_locals, at, wanted, seen, _DEPTH)
            frame = frame.f_back

    def _within(
        self, named: Any, at: Place, wanted: set[int], seen: set[int], depth: int
    ) -> Iterator[tuple[Place, int]]:
        for name, value in list(named.items()):
            if id(value) in wanted:
                wanted.discard(id(value))
                yield at._replace(name=f"{at.name}{name}"), id(value)
                continue
            inside = self._attributes(value) if depth and id(value) not in seen else None
            if inside is not None:
                seen.add(id(value))
                cls = type(value)
                owner = Place("self.", sys.modules[cls.__module__].__file__ or "", cls.__name__)
                yield from self._within(inside, owner, wanted, seen, depth - 1)

    def _attributes(self, value: Any) -> dict[str, Any] | None:
        """Return the attributes of an object of the user's classes; None: it is none."""
        path = getattr(sys.modules.get(type(value).__module__), "__file__", None)
        if path is None or not self._frames.is_users(path):
            return None
        attributes = getattr(value, "__dict__", None)
        return attributes if isinstance(attributes, dict) else None


def _is_container(one: Any) -> bool:
    """Whether it is a list, a dictionary or a deque, one that has no bound."""
    kind = type(one)
    return kind is list or kind is dict or (kind is deque and one.maxlen is None)


def _known(one: Any, length: int) -> _Known:
    """Return what tells a container of a length; of a dictionary its entries may go, and say nothing."""
    if type(one) is dict:
        return _Known(length, 0, 0)
    return _Known(length, id(one[0]), id(one[length - 1]))


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
