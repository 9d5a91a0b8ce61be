"""The transforms of a data set, and the line of the user's source that each comes from."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames

MAX_DEPTH = 4
MAX_PARTS = 64
"""Data sets and transforms in one list; a longer one holds samples."""
_NAMES = ("transform", "augment")
"""In the name of an attribute that is a transform by itself."""


class Transform(NamedTuple):
    """One transform, and where it is held.

    Attributes:
        value: an object that is called, or a function.
        holder: the list, or the object with an attribute, that holds it.
        key: in the holder.
    """

    value: Any
    holder: Any
    key: Any


def transforms_of(dataset: Any) -> Iterator[Transform]:
    """Yield the transforms of a data set and of those in it: `self.transform`, and all of a list `transforms`."""
    seen: set[int] = set()
    yield from _held_by(dataset, MAX_DEPTH, seen)


def _held_by(holder: Any, depth: int, seen: set[int]) -> Iterator[Transform]:
    if id(holder) in seen:
        return
    seen.add(id(holder))
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        chain = getattr(value, "transforms", None)
        if callable(value) and isinstance(chain, list):
            yield from _of_chain(chain, depth, seen)
        elif callable(value) and any(word in name for word in _NAMES) and not isinstance(value, type):
            yield Transform(value, holder, name)
        elif depth and isinstance(value, (list, tuple)) and len(value) <= MAX_PARTS:
            for each in value:
                if hasattr(each, "__getitem__") and hasattr(each, "__dict__"):
                    yield from _held_by(each, depth - 1, seen)
        elif depth and hasattr(value, "__dict__") and (hasattr(value, "__getitem__") or _holds_chain(value)):
            yield from _held_by(value, depth - 1, seen)


def _of_chain(chain: list[Any], depth: int, seen: set[int]) -> Iterator[Transform]:
    for number, value in enumerate(chain[:MAX_PARTS]):
        inner = getattr(value, "transforms", None)
        if depth and isinstance(inner, list):
            yield from _of_chain(inner, depth - 1, seen)
        elif callable(value):
            yield Transform(value, chain, number)


def _holds_chain(value: Any) -> bool:
    """A pair of transforms, as torchvision's data sets keep one."""
    return not isinstance(value, type) and any(
        isinstance(getattr(part, "transforms", None), list) or any(word in name for word in _NAMES)
        for name, part in vars(value).items()
    )


def is_function(transform: Any) -> bool:
    """Whether it is no object of a class that has its own `__call__`."""
    return type(transform).__module__ in {"builtins", "functools"}


def name_of(transform: Any) -> str:
    """Return what a reader calls it."""
    function = getattr(transform, "func", transform)  # a partial's
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) and is_function(transform) else type(transform).__name__


def line_of_transform(transform: Any, frames: Frames) -> tuple[str | None, int | None]:
    """Return the line of the user's: of its definition, where that is theirs, else the one that makes it."""
    code = code_of(transform)
    if code is not None and frames.is_users(code.co_filename):
        return code.co_filename, code.co_firstlineno
    return _where_made(type(transform).__name__, frames)


def code_of(called: Any) -> CodeType | None:
    """Return the code that runs when something is called: a function's, or its class's `forward` or `__call__`."""
    function = getattr(called, "func", called)
    for found in (function, *(getattr(type(called), name, None) for name in ("forward", "__call__"))):
        code = getattr(found, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def _where_made(name: str, frames: Frames) -> tuple[str | None, int | None]:
    """Return the one place in the user's modules that calls something of this name."""
    found = [(path, line) for path in user_files(frames) for line in _calls(path, name)]
    return found[0] if found else (None, None)


def user_files(frames: Frames) -> list[str]:
    """Return the files of the user's modules, the script first."""
    paths = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    own = dict.fromkeys(path for path in [main, *paths] if path and path.endswith(".py"))
    return [path for path in own if frames.is_users(path)]


def _calls(path: str, name: str) -> list[int]:
    try:
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text) if name in text else None
    except (OSError, ValueError, SyntaxError):
        return []
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    return sorted(node.lineno for node in calls if _named(node.func) == name)


def _named(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def innermost(dataset: Any) -> Any:
    """Return the data set that makes the samples: `Subset` and the like hold it as `dataset`."""
    for _ in range(MAX_DEPTH):
        if not type(dataset).__module__.startswith("torch.utils.data"):
            break
        inner = getattr(dataset, "dataset", None)
        if inner is None:
            parts = getattr(dataset, "datasets", None)
            inner = parts[0] if isinstance(parts, list) and parts else None
        if inner is None:
            break
        dataset = inner
    return dataset
