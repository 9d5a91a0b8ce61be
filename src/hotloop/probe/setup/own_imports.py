"""The probe imports the standard library's modules where the user's folder has modules of the same names.

A `resource.py` beside the user's script is what the script imports by that name, and nothing of the probe's. Where
there is such a name, and only there, import statements in hotloop's modules look for it in the standard library alone,
and what they find is kept apart: the program's own import finds what it would have found without us.

Nothing is imported here that Python has not imported by itself when it starts.
"""

from __future__ import annotations

import builtins
import os
import sys
from _frozen_importlib_external import PathFinder
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

_LIBRARY = "hotloop._library"
_SIDE_EFFECTS = frozenset({"antigravity", "this", "idlelib", "turtle", "turtledemo", "__main__"})
"""What shows something when it is imported."""


def shadowed_names(folders: Iterable[str]) -> frozenset[str]:
    """Return names of the standard library that a folder has modules of, and that are not imported yet."""
    found: set[str] = set()
    for folder in folders:
        try:
            found.update(name.partition(".")[0] for name in os.listdir(folder or "."))
        except OSError:
            continue
    return frozenset(name for name in found & library_names() if name not in sys.modules)


def folders_of_program() -> list[str]:
    """Return the folders that come before the standard library on the program's path, for those who are too early."""
    words = getattr(sys, "orig_argv", [])[1:]
    script = next((word for word in words if word.endswith(".py") and not word.startswith("-")), "")
    first = [os.path.dirname(os.path.realpath(script)) if script else ""]
    return [*first, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]


def keep_apart(names: frozenset[str]) -> None:
    """Let hotloop's modules that are imported from now on find the standard library's own by these names."""
    package = ModuleType(_LIBRARY)
    package.__path__ = library_path(sys.path)
    sys.modules[_LIBRARY] = package
    statement = _Import(names)
    sys.meta_path.insert(0, _OwnModules(statement))
    statement.load()


class _Import:
    """The import statement of hotloop's modules, and of the library's modules that are kept apart.

    Args:
        names: that mean something else in the program.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._apart: dict[str, ModuleType] = {}
        self._lock = RLock()
        self._import = builtins.__import__

    def load(self) -> None:
        """Import what the program's modules stand before; some is of another system, or of none."""
        for name in self._names - _SIDE_EFFECTS:
            try:
                self._apart[name] = self(name, fromlist=("",))
            except Exception:  # nothing of ours imports it, or its import statement fails and says why
                continue

    def __call__(
        self, name: str, globals_: Any = None, locals_: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """Return what an import statement gets."""
        first = name.partition(".")[0]
        if level == 0 and first in self._names:
            module = self._import(f"{_LIBRARY}.{name}", {}, None, fromlist or ("",), 0)
            return module if fromlist else sys.modules[f"{_LIBRARY}.{first}"]
        if level == 0 and name not in sys.modules and first in library_names():
            with self._lock:
                return self._as_without_the_program(name, fromlist)
        return self._import(name, globals_, locals_, fromlist, level)

    def _as_without_the_program(self, name: str, fromlist: Any) -> Any:
        """Import a module of the library which may import others that the program's stand before."""
        theirs = {each: sys.modules[each] for each in self._apart if each in sys.modules}
        path = sys.path[:]
        sys.modules.update(self._apart)
        sys.path[:] = library_path(path)
        try:
            return self._import(name, {}, None, fromlist, 0)
        finally:
            sys.path[:] = path
            for each in self._apart:
                sys.modules.pop(each, None)
            sys.modules.update(theirs)


def library_names() -> frozenset[str]:
    """Return the names of the standard library's modules; empty before Python 3.10."""
    names: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())
    return names


def library_path(path: Iterable[str]) -> list[str]:
    """Return the entries of a path that hold the standard library: zip, modules, and those written in C."""
    home = os.path.realpath(os.path.dirname(os.__file__))
    places = {home, os.path.join(home, "lib-dynload")}
    above = os.path.join(os.path.dirname(home), "python")
    return [
        place
        for place in (os.path.realpath(each) for each in path if each)
        if place in places or (place.startswith(above) and place.endswith(".zip"))
    ]


class _OwnModules:
    """Finds hotloop's modules, and those that are kept apart, and gives them an import statement of their own.

    Args:
        statement: what stands for `__import__` in them.
    """

    def __init__(self, statement: _Import) -> None:
        self._builtins = {**vars(builtins), "__import__": statement}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return where a module is."""
        if not name.startswith("hotloop."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(module)["__builtins__"] = self._builtins
            execute(module)

        loader.exec_module = exec_module
