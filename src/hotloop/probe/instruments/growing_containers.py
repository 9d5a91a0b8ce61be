"""The program's lists, dictionaries and caches that gain entries with every step."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.growing_hooks import GrowingHooks
from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.instruments.named_containers import NamedContainers, Place, is_container
from hotloop.probe.instruments.object_sizes import DEPTH, attributes, has_data, held_bytes
from hotloop.probe.probe import Probe

MAX_OBJECTS = 5_000_000
"""A pass over so many takes a second or two."""
MOST_STEPS_GROW = 0.5
"""Of the steps: what is filled now and then is no leak of the loop."""


class Known(NamedTuple):
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
        self._before: dict[int, Known] = {}
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
        # A dictionary of plain values is none of the collector's objects.
        named = (one for _, one in NamedContainers(self._frames).of_modules())
        containers = itertools.chain(filter(is_container, objects), named)
        self._before = {id(one): known(one, len(one)) for one in containers if len(one)}
        self._hooks.start(objects)

    def step(self) -> None:
        """Count."""
        self._steps += 1

    def stop(self) -> Any:
        """Return the containers that grew, what they gained in a step, and hooks that piled up."""
        return {"containers": self._containers(), "hooks": self._hooks.grown(gc.get_objects(), self._steps)}

    def after_fork(self) -> None:
        """Put everything back in a child."""
        self._hooks.remove()

    def _containers(self) -> list[dict[str, Any]]:
        grown = {id(one): gained for one, gained in self._grown()}
        self._before = {}
        named = NamedContainers(self._frames)
        found: list[dict[str, Any]] = []
        for place, one in itertools.chain(named.of_modules(), named.of_variables(sys._getframe())):
            if not grown:
                break
            if id(one) in grown:
                found.append(described(place, one, grown.pop(id(one))))
        return found

    def _grown(self) -> Iterator[tuple[Any, float]]:
        named = (one for _, one in NamedContainers(self._frames).of_modules())
        for one in itertools.chain(filter(is_container, gc.get_objects()), named):
            before = self._before.get(id(one))
            if before is None or len(one) - before.length < 2:
                continue
            gained = (len(one) - before.length) / max(1, self._steps)
            if known(one, before.length) == before and gained >= MOST_STEPS_GROW:
                yield one, gained


def known(one: Any, length: int) -> Known:
    """Return what tells a container of a length; of a dictionary its entries may go, and say nothing."""
    if isinstance(one, dict):
        return Known(length, 0, 0)
    return Known(length, id(one[0]), id(one[length - 1]))


def described(place: Place, one: Any, per_step: float) -> dict[str, Any]:
    """Return what is told of a container that grew.

    Args:
        place: its name.
        one: the container.
        per_step: entries that it gains.
    """
    last = _last(one)
    return {
        **place._asdict(),
        "kind": type(one).__name__,
        "per_step": per_step,
        "bytes_per_step": per_step * held_bytes(last),
        "keeps_graph": any(getattr(each, "grad_fn", None) is not None for each in _tensors(last, DEPTH)),
        "has_tensors": bool(_tensors(last, DEPTH)),
    }


def _last(one: Any) -> Any:
    return next(reversed(one.values())) if isinstance(one, dict) else one[-1]


def _tensors(value: Any, depth: int) -> list[Any]:
    """Return the tensors and arrays of an entry."""
    if has_data(value):
        return [value]
    if not depth:
        return []
    if isinstance(value, dict):
        inside = [*value.values()]
    else:
        inside = [*value] if isinstance(value, list | tuple) else [*attributes(value).values()]
    return [each for inner in inside for each in _tensors(inner, depth - 1)]
