"""Finished work is looked up before it is done again: that is all there is to resuming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hotloop.tune.session.budget import Budget

_Value = TypeVar("_Value")
_SECONDS = "seconds|"


class Journal(Protocol):
    """Where finished work is kept; a `Session` is one."""

    def put(self, key: str, value: object) -> None:
        """Commit a value."""

    def get(self, key: str, kind: Any) -> Any:
        """Return it, or None."""


class Ledger:
    """Work that is done once, and its time, which counts once.

    A session that was killed is charged what its finished work took, so it decides as it would have. One that came to
    its end and is gone on with has new time.

    Args:
        journal: keeps the work.
        budget: what the work is charged to.
        free: what is finished is not charged.
    """

    def __init__(self, journal: Journal, budget: Budget, *, free: bool = False) -> None:
        self.budget = budget
        self._free = free
        self._journal = journal
        self._seconds: dict[str, float] = {}

    def knows(self, key: str) -> bool:
        """Whether this work is finished."""
        return self.look(key, Any) is not None

    def look(self, key: str, kind: Any) -> Any:
        """Return what finished work gave, uncharged; None: it is not finished."""
        finished = self._journal.get(_SECONDS + key, float) is not None
        return self._journal.get(key, kind) if finished else None

    def once(self, key: str, kind: Any, work: Callable[[], _Value]) -> _Value:
        """Return the journal's value under a key, or do the work and commit it."""
        known: _Value | None = self._journal.get(key, kind)
        if known is not None:
            self._charge(key)
            return known
        began = self.budget.now()
        value = work()
        self._seconds[key] = self.budget.now() - began
        # The time first: without a value it counts for nothing, a value without its time would be free.
        self._journal.put(_SECONDS + key, self._seconds[key])
        self._journal.put(key, value)
        return value

    def put(self, key: str, value: object) -> None:
        """Commit what is known better by now than when it was worked out."""
        self._journal.put(key, value)

    def seconds(self, key: str) -> float:
        """Return what finished work took, in this session or in the one that it goes on from."""
        return self._seconds[key]

    def _charge(self, key: str) -> None:
        if key not in self._seconds:
            self._seconds[key] = self._journal.get(_SECONDS + key, float) or 0.0
            if not self._free:
                self.budget.charge(self._seconds[key])
