"""Modules that are made anew around the model at each call, as solvers of neural ODEs do it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol
from weakref import WeakSet


class Known(Protocol):
    """What is asked of a root that was found before."""

    @property
    def cls(self) -> type:
        """Its class."""

    def outlived_by(self) -> Any:
        """Return the part of it that is still there; None: it is not gone, or no such part is."""


class Wrappers:
    """Tells wrappers from models. A model made anew (a fold, an episode) has parts of its own."""

    def __init__(self) -> None:
        self._models: dict[type, WeakSet[Any]] = {}
        """What lies within the wrappers of a class."""

    def lasting(self, module: Any, known: Iterable[Known]) -> Any:
        """Return a module that is called, or the model within it where it is a wrapper.

        Wrappers of torch itself (DDP, compiled modules) are called for what they do.

        Args:
            module: that is called.
            known: the roots that were found before, those that are gone too.
        """
        for root in known:
            model = root.outlived_by()
            if model is not None and not root.cls.__module__.startswith("torch."):
                self._models.setdefault(root.cls, WeakSet()).add(model)
        models = self._models.get(type(module), ())
        return next((part for part in module.modules() if part in models), module) if models else module


def parts_with_all(module: Any) -> list[Any]:
    """Return the child that holds all parameters of a module, its child that does, and so on."""
    parts: list[Any] = []
    while not any(parameter is not None for parameter in module._parameters.values()):
        holders = [child for child in module.children() if next(child.parameters(), None) is not None]
        if len(holders) != 1:
            break
        module = holders[0]
        parts.append(module)
    return parts
