"""An activation as JSON: the call that makes it.

An optimization decides in hotloop's own process, with hotloop's libraries, and acts in the user's, which may be another
Python with other libraries. So the activation is made twice: once beside the optimization, to be described, and once
where it acts, from the description; the optimization's own module is not imported there.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from hotloop.probe.activation.activation import Activation


class NotDescribable(TypeError):  # noqa: N818 - an answer, not an error
    """A value that has no name by which another process could find it."""


def described(value: Any) -> Any:
    """Return a value in a form that JSON keeps.

    Args:
        value: an activation, a class or function of a module, a `functools.partial` of such, or builtin values.

    Raises:
        NotDescribable: it holds something else: a bound method, a function within a function.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [described(each) for each in value]}
    if isinstance(value, Mapping):
        return {"dict": [[described(key), described(each)] for key, each in value.items()]}
    if isinstance(value, Activation):
        args, kwargs = value.made_with
        return {"call": _named(type(value)), **_arguments(args, kwargs)}
    if isinstance(value, functools.partial):
        return {"partial": _named(value.func), **_arguments(value.args, value.keywords)}
    return {"name": _named(value)}


def made_from(description: Any) -> Any:
    """Return the value that was described."""
    if not isinstance(description, dict):
        return description
    if "list" in description:
        return [made_from(each) for each in description["list"]]
    if "tuple" in description:
        return tuple(made_from(each) for each in description["tuple"])
    if "dict" in description:
        return {made_from(key): made_from(each) for key, each in description["dict"]}
    if "name" in description:
        return _found(description["name"])
    args, kwargs = made_from(description["args"]), made_from(description["kwargs"])
    if "partial" in description:
        return functools.partial(_found(description["partial"]), *args, **kwargs)
    return _found(description["call"])(*args, **kwargs)


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"args": described(list(args)), "kwargs": described(kwargs)}


def _named(thing: Any) -> str:
    """Return `module:name`, where that leads to the thing again."""
    name = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    try:
        if _found(name) is thing:
            return name
    except (ImportError, AttributeError, ValueError):
        pass
    raise NotDescribable(f"{thing!r} has no name that another process could find it by")


def _found(name: str) -> Callable[..., Any]:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]
