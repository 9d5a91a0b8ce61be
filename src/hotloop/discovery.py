"""Find what a package holds: a rule or an optimization is listed by lying in the folder of its family.

No list names them. A member is a module of the folder, or a folder with a module of a given name; order is by name, so
that it is the same on every machine, from a wheel and from a checkout.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def members(package: str, of_folder: str = "") -> Iterator[ModuleType]:
    """Yield the modules that lie directly in a package, by name.

    Args:
        package: its name.
        of_folder: the module that stands for a folder; empty: folders are no members.
    """
    for found in sorted(iter_modules(import_module(package).__path__), key=lambda each: each.name):
        if not found.ispkg:
            yield import_module(f"{package}.{found.name}")
        elif of_folder:
            yield import_module(f"{package}.{found.name}.{of_folder}")
