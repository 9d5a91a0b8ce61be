"""The script that Python was started with, run from other code than its file's.

Python reads a script by itself, unless an entry of `sys.path_hooks` answers for its path, as one does for zip files.
Then `runpy` runs what that finder gives, with two frames of its own below the script's; the rest is put as it would
have been.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType
from typing import Any

BEGINS = "_hotloop_script"
"""What an edited script calls before anything else."""


def edit_script(code_of: Callable[[str], CodeType | None]) -> None:
    """Answer for scripts that are changed: the one that is started, and those that `runpy.run_path` runs."""

    def finder(path: str) -> _Script:
        code = code_of(path) if isinstance(path, str) and path.endswith(".py") else None
        if code is None:
            raise ImportError("this is left to Python")
        return _Script(path, code)

    sys.path_hooks.insert(0, finder)


def begin_script(tree: ast.Module) -> None:
    """Let a script begin by taking back what `runpy` has told it; behind its docstring and imports from the future."""
    at = 0
    for at, statement in enumerate(tree.body):
        is_docstring = (
            at == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        if not is_docstring and not (
            isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        ):
            break
    call = ast.parse(f"{BEGINS}(globals())").body[0]
    tree.body.insert(at, call)


def as_started(module: dict[str, Any]) -> None:
    """Give a script the names that a script has."""
    loader = SourceFileLoader(module["__name__"], module["__file__"])
    module.update({"__spec__": None, "__package__": None, "__loader__": loader})


class _Script:
    """Finds and gives the code of one script.

    Args:
        path: as Python names it, absolute.
        code: what is run.
    """

    def __init__(self, path: str, code: CodeType) -> None:
        self._path = path
        self._code = code

    def find_spec(self, name: str, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002 - the protocol's
        """Return the script, if it is asked for."""
        return ModuleSpec(name, self, origin=self._path) if name == "__main__" else None  # type: ignore[arg-type]

    def get_code(self, name: str) -> CodeType:  # noqa: ARG002 - the protocol's signature
        """Return the code; it is about to run."""
        sys.path_importer_cache.pop(self._path, None)
        is_started = bool(sys.argv) and sys.argv[0] in sys.orig_argv
        if is_started and sys.path[:1] == [self._path]:
            folder = os.path.dirname(os.path.realpath(self._path))
            sys.path[:1] = [] if getattr(sys.flags, "safe_path", False) else [folder]
        return self._code
