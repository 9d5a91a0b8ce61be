"""Checks of a plan's parameters, with messages that say what is allowed."""

from __future__ import annotations

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
    if params.get(key, False) not in {True, False}:
        raise ValueError(f"{key} is {params[key]!r}; allowed: true, false")


def choice(params: Mapping[str, Any], key: str, allowed: Sequence[str]) -> None:
    """Raise ValueError unless the parameter is absent or one of the words allowed."""
    if key in params and params[key] not in allowed:
        raise ValueError(f"{key} is {params[key]!r}; allowed: {', '.join(allowed)}")


def required(params: Mapping[str, Any], key: str) -> None:
    """Raise ValueError where the parameter is absent."""
    if key not in params:
        raise ValueError(f"{key} is missing")


def whole_path(params: Mapping[str, Any], key: str) -> None:
    """Raise ValueError unless the parameter is a path from the root on."""
    required(params, key)
    if not isinstance(params[key], str) or not params[key].startswith("/"):
        raise ValueError(f"{key} is {params[key]!r}; it must be a path from the root on")
