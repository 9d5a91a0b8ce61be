"""Not a phase of the step: imports after torch, so that they are told from the rest of the set-up.

The same finder tells others when a library that they wait for has been imported.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import Section, section

Waiting = Mapping[str, Callable[[ModuleType], None]]
"""What to call, by module name, when that module has been imported."""


def both(first: Waiting, second: Waiting) -> dict[str, Callable[[ModuleType], None]]:
    """Return what two want to be done; where both wait for a module, one is called after the other."""

    def of(name: str) -> Callable[[ModuleType], None]:
        wanted = [waiting[name] for waiting in (first, second) if name in waiting]

        def call(module: ModuleType) -> None:
            for then in wanted:
                then(module)

        return call

    return {name: of(name) for name in {**first, **second}}


def install(probe: Probe, waiting: Waiting) -> None:
    """Watch imports from here on.

    Args:
        probe: the probe.
        waiting: called at once for what is imported already.
    """
    for name, then in waiting.items():
        if name in sys.modules:
            with probe.survive(f"library:{name}"):
                then(sys.modules[name])
    sys.meta_path.insert(0, _Finder(probe, section(probe, Kind.IMPORT, aside=True), waiting))


class _Finder:
    """A meta path finder that answers with what the other finders say, and watches the module run.

    Only outermost imports are recorded: what they import in turn is passed over at the cost of one look.
    """

    def __init__(self, probe: Probe, marks: Section, waiting: Waiting) -> None:
        self._probe = probe
        self._enter, self._leave = marks
        self._waiting = waiting
        self._inside = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self._inside and name not in self._waiting:
            return None
        for finder in self._others():
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                self._watch(name, spec.loader)
                return spec
        return None

    def _others(self) -> list[Any]:
        """The finders that have not been asked yet."""
        finders = list(sys.meta_path)
        return finders[finders.index(self) + 1 :] if self in finders else []

    def _watch(self, name: str, loader: Any) -> None:
        """Record the run of a module; a loader that is a class, or takes no attributes, serves other modules too."""
        if loader is None or isinstance(loader, type):
            return
        original = getattr(loader, "exec_module", None)
        if original is None or "exec_module" in getattr(loader, "__dict__", {"exec_module": None}):
            return

        outermost = False

        def enter() -> bool:
            nonlocal outermost
            outermost = not self._inside and self._enter()
            self._inside = self._inside or outermost
            return True

        def leave() -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            if outermost:
                self._inside = False
                self._leave()
            if name in self._waiting and name in sys.modules:
                with self._probe.survive(f"library:{name}"):
                    self._waiting[name](sys.modules[name])

        loader.exec_module = Timed(original, Section(enter, leave))
