"""The rules of a package: a folder is a family, a file with a `rule` is one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

FAMILIES = ("data", "host", "compute", "memory", "distributed", "run")
"""In the order of the manual: the way of a batch, then the run around the step."""

Rule = TypeVar("Rule")


def rules_in(package: ModuleType, kind: type[Rule]) -> Iterator[tuple[str, Rule]]:
    """Yield each rule of a package with its family, in alphabetical order within a family."""
    for family in FAMILIES:
        folder = import_module(f"{package.__name__}.{family}")
        for name in sorted(module.name for module in iter_modules(folder.__path__)):
            found = getattr(import_module(f"{folder.__name__}.{name}"), "rule", None)
            if isinstance(found, kind):
                yield family, found
