"""Finished work is looked up before it is done again: that is all there is to resuming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_Value = TypeVar("_Value")


class Journal(Protocol):
    """Where finished work is kept; a `Session` is one."""

    def put(self, key: str, value: object) -> None:
        """Commit a value."""

    def get(self, key: str, kind: Any) -> Any:
        """Return it, or None."""


def once(journal: Journal, key: str, kind: Any, work: Callable[[], _Value]) -> _Value:
    """Return the journal's value under a key, or do the work and commit it."""
    known: _Value | None = journal.get(key, kind)
    if known is not None:
        return known
    value = work()
    journal.put(key, value)
    return value
