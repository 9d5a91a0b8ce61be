"""Modules of one class, given another."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.optimize.comparison.compared_swap import ComparedSwap
from hotloop.optimize.comparison.exchange import Exchange
from hotloop.patterns.refusal import NotThis

COUNTED_CALLS = 64
"""Calls that are counted; then the new class is as its author wrote it."""


class ReplacedModules(ComparedSwap):
    """Exchanges the class of modules.

    Args:
        name: of the class that is replaced.
        replacement: returns what takes its place for a module.
        at_once: see `ComparedSwap`.
    """

    def __init__(self, name: str, replacement: Callable[[Any], type], *, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._name = name
        self._replacement = replacement
        self.nothing = f"no training forward ran a {name}"

    def found(self, root: Any) -> tuple[Sequence[Exchange], Sequence[str]]:
        """Return one exchange for each pair of classes."""
        exchanges: dict[tuple[type, type], _Class] = {}
        left: dict[str, None] = {}
        for module in root.modules():
            if type(module).__name__ != self._name:
                continue
            try:
                new = self._replacement(module)
            except NotThis as reason:
                left[f"{self._name}: {reason}"] = None
                continue
            key = (type(module), new)
            exchanges.setdefault(key, _Class(self._name, type(module), new)).modules.append(module)
        return list(exchanges.values()), list(left)


class _Class(Exchange):
    """The same modules as objects of another class."""

    def __init__(self, place: str, own: type, new: Any) -> None:
        super().__init__(place)
        self._own = own
        self._new = new
        self._forward = new.forward

    def put(self, on: bool) -> None:
        """Give every module the new class, or its own."""
        if on and self.num_calls < COUNTED_CALLS:
            self._new.forward = self._counting()
        for module in self.modules:
            module.__class__ = self._new if on else self._own
        if not on:
            self._new.forward = self._forward

    def _counting(self) -> Any:
        forward = self._forward

        @functools.wraps(forward)
        def counted(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.num_calls += 1
            if self.num_calls >= COUNTED_CALLS:
                self._new.forward = forward
            return forward(module, *args, **kwargs)

        return counted
