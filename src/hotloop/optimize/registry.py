"""Everything that can be tried: the families of the catalogue, and what other packages register.

A package adds an optimization with an entry point of the group `hotloop.optimizations`; its value is the
class.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from hotloop.discovery import members
from hotloop.model.errors import HotloopError
from hotloop.model.optimization import Refusal
from hotloop.optimize.optimization import Optimization

GROUP = "hotloop.optimizations"
FAMILIES = ("input", "precision", "compute", "memory", "system")
"""In the order in which they are shown."""


@lru_cache(maxsize=1)
def built_in() -> dict[str, tuple[type[Optimization], ...]]:
    """Return the optimizations of each family: every row that lies in its folder."""
    return {
        family: tuple(
            cls
            for module in members(f"hotloop.optimize.catalogue.{family}", of_folder="row")
            for cls in _rows(module)
        )
        for family in FAMILIES
    }


def _rows(module: ModuleType) -> Iterator[type[Optimization]]:
    """Yield the optimizations that a module defines, in its order; a class without a name of its own is a base."""
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__
        if own and issubclass(value, Optimization) and "name" in vars(value):
            yield value


def all_optimizations() -> tuple[Optimization, ...]:
    """Return every optimization, the built-in ones family by family, then those of plug-ins."""
    ours = tuple(cls() for family in built_in().values() for cls in family)
    return ours + _load(_entry_points())[0]


def broken_plugins() -> tuple[Refusal, ...]:
    """Return the plug-ins that could not be loaded, with the reason; they are left out, nothing stops."""
    return _load(_entry_points())[1]


def get(name: str) -> Optimization:
    """Return the optimization of this name.

    Raises:
        HotloopError: there is none; the hint names the nearest ones.
    """
    known = {optimization.name: optimization for optimization in all_optimizations()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    broken = {refusal.name: refusal.reason for refusal in broken_plugins()}
    if name in broken:
        hint = f"a plug-in of this name could not be loaded: {broken[name]}"
    raise HotloopError(f"there is no optimization named {name!r}", hint)


def _entry_points() -> Sequence[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _load(points: Sequence[EntryPoint]) -> tuple[tuple[Optimization, ...], tuple[Refusal, ...]]:
    taken = {cls.name for family in built_in().values() for cls in family}
    loaded: list[Optimization] = []
    broken: list[Refusal] = []
    for point in points:
        try:
            optimization = _make(point, taken)
        except Exception as error:  # a plug-in is foreign code: whatever it raises is its report, not our end
            broken.append(Refusal(point.name, f"{point.value}: {type(error).__name__}: {error}"))
            continue
        taken.add(optimization.name)
        loaded.append(optimization)
    return tuple(loaded), tuple(broken)


def _make(point: EntryPoint, taken: set[str]) -> Optimization:
    cls = point.load()
    if not (isinstance(cls, type) and issubclass(cls, Optimization)):
        raise TypeError(f"{cls!r} is not a subclass of hotloop.optimize.optimization.Optimization")
    optimization = cls()
    if optimization.name != point.name:
        raise ValueError(f"the entry point is named {point.name!r}, the optimization {optimization.name!r}")
    if optimization.name in taken:
        raise ValueError(f"the name {optimization.name!r} is taken")
    return optimization
