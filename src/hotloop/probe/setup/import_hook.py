"""Run a function as soon as `import torch` has finished, leaving no trace on the import system."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Finder:
    """A meta path finder that answers for a module with what the other finders say, and goes away when it is there.

    Libraries ask `importlib.util.find_spec("torch")` before anyone imports it: an answer is not yet an import.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then
        self._asking = False

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name != self._name or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: object) -> None:
        original = loader.exec_module  # type: ignore[attr-defined]

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # type: ignore[attr-defined]
            original(module)
            with contextlib.suppress(ValueError):  # two threads may import at once
                sys.meta_path.remove(self)
            self._then()

        # A warning or an error raised while torch is imported passes over the import system's own frames.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")
        loader.exec_module = exec_module  # type: ignore[attr-defined]


def when_torch_is_imported(then: Callable[[], None]) -> None:
    """Call `then` once, right after torch's first import in this process (at once if it is there already)."""
    when_imported("torch", then)


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Call `then` once, right after the first import of a module in this process (at once if it is there already)."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))
