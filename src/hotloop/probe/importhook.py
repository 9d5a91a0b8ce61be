"""Run a function as soon as `import torch` has finished, leaving no trace on the import system."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class _TorchFinder:
    """A meta path finder that answers once, for torch, and then goes away."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: object) -> None:
        original = loader.exec_module  # type: ignore[attr-defined]

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # type: ignore[attr-defined]
            original(module)
            self._then()

        loader.exec_module = exec_module  # type: ignore[attr-defined]


def when_torch_is_imported(then: Callable[[], None]) -> None:
    """Call `then` once, right after torch's first import in this process (at once if it is there already)."""
    if "torch" in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _TorchFinder(then))  # type: ignore[arg-type]
