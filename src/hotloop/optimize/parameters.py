"""Checks of a plan's parameters, with messages that say what is allowed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any


def only(params: Mapping[str, Any], *allowed: str) -> None:
    """Raise ValueError for a parameter that the optimization does not have."""
    for key in params:
        if key not in allowed:
            raise ValueError(f"unknown parameter {key!r}; allowed: {', '.join(allowed) or 'none'}")


def integer(params: Mapping[str, Any], key: str, low: int, high: int) -> None:
    """Raise ValueError unless the parameter is absent or a whole number from `low` to `high`."""
    value = params.get(key, low)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{key} is {value!r}; allowed: a whole number from {low} to {high}")


def boolean(params: Mapping[str, Any], key: str) -> None:
    """Raise ValueError unless the parameter is absent, true or false."""
    value = params.get(key, False)
    if value is not True and value is not False:
        raise ValueError(f"{key} is {params[key]!r}; allowed: true, false")


def choice(params: Mapping[str, Any], key: str, allowed: Sequence[str]) -> None:
    """Raise ValueError unless the parameter is absent or one of the words allowed."""
    if key in params and params[key] not in allowed:
        raise ValueError(f"{key} is {params[key]!r}; allowed: {', '.join(allowed)}")


def required(params: Mapping[str, Any], key: str) -> None:
    """Raise ValueError where the parameter is absent."""
    if key not in params:
        raise ValueError(f"{key} is missing")


_OF_THE_SYSTEM = ("/boot", "/dev", "/etc", "/proc", "/sys")


def data_folder(params: Mapping[str, Any], key: str) -> None:
    """Raise ValueError unless the parameter is the whole path of a folder that may hold a data set.

    The root of the file system holds everything, and folders of the system hold devices, settings and secrets.
    """
    required(params, key)
    path = params[key]
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise ValueError(f"{key} is {path!r}; it must be a path from the root on")
    names = {os.path.normpath(path)}
    with contextlib.suppress(OSError):
        names.add(os.path.realpath(path))
    if any(_is_of_the_system(name) for name in names):
        raise ValueError(f"{key} is {path!r}; it must be a folder with a data set, not one of the system")


def _is_of_the_system(path: str) -> bool:
    return not path.strip("/") or any(path == one or path.startswith(f"{one}/") for one in _OF_THE_SYSTEM)
