"""The tensor among a model's arguments whose size is the batch's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_NAMED = "input_ids"
"""Tokens, by the name that libraries have for them."""


def main_input(args: Any, kwargs: Any) -> Any:
    """Return it, also out of a dictionary; None: none is found.

    transformers' generation gives positions before the tokens.
    """
    named = kwargs.get(_NAMED) if not args else None
    return named if _has_shape(named) else next(_of_batch(args or kwargs.values()), None)


def _of_batch(values: Iterable[Any]) -> Iterator[Any]:
    """A list is not looked into: of one that holds images, each is a sample."""
    for value in values:
        if _has_shape(value):
            yield value
        elif isinstance(value, Mapping):
            named = (value[_NAMED],) if _NAMED in value else ()
            yield from filter(_has_shape, (*named, *value.values()))


def _has_shape(value: Any) -> bool:
    return bool(getattr(value, "shape", None))
