"""A loader worker's containers: those that grow, and those of Python objects that it copies by reading them.

A walk over all objects would itself copy every page that they lie in, so that names are followed here instead: the
attributes of the data set, and the program's globals.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.growing_containers import MOST_STEPS_GROW, Known, described, known
from hotloop.probe.instruments.named_containers import NamedContainers, Place, is_container
from hotloop.probe.instruments.object_sizes import header_bytes, is_sized

LEAST_ENTRIES = 1000
"""With fewer, copies are no matter of reference counts: their objects are large, and data."""


class WorkerContainers:
    """Compares the containers of one worker at the beginning and at the end of a window.

    Args:
        dataset: of the worker.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._before: dict[int, Known] = {
            id(one): known(one, len(one)) for _, one in self._named() if is_container(one) and len(one)
        }

    def value(self, num_samples: int) -> dict[str, Any]:
        """Return the containers that grew, and the largest one that is copied, for JSON.

        Args:
            num_samples: made since the beginning.
        """
        named = list(self._named())
        return {"growing": list(self._growing(named, max(1, num_samples))), "copied": _copied(named)}

    def _named(self) -> Iterator[tuple[Place, Any]]:
        walk = NamedContainers(Frames(), lambda value: is_container(value) or is_sized(value))
        return itertools.chain(walk.of_object(self._dataset), walk.of_modules())

    def _growing(self, named: list[tuple[Place, Any]], num_samples: int) -> Iterator[dict[str, Any]]:
        for place, one in named:
            before = self._before.get(id(one))
            if before is None or known(one, before.length) != before:
                continue
            gained = len(one) - before.length
            if gained >= 2 and gained >= MOST_STEPS_GROW * num_samples:
                yield described(place, one, gained / num_samples)


def _copied(named: list[tuple[Place, Any]]) -> dict[str, Any] | None:
    rows = [
        {
            **place._asdict(),
            "kind": type(one).__name__,
            "num": len(one),
            "copied_bytes": header_bytes(one),
        }
        for place, one in named
        if is_sized(one) and len(one) >= LEAST_ENTRIES
    ]
    return max(rows, key=lambda row: float(row["copied_bytes"]), default=None)
