"""Which event on a host thread runs inside which."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.trace import HostEvents


@dataclass(frozen=True)
class Nesting:
    """The call tree of all host threads."""

    parent: Array
    """Row of the event that directly encloses each event; -1 at the top."""
    depth: Array
    order: Array
    """Rows by thread and start, an enclosing event before what it encloses."""

    def self_time(self, host: HostEvents) -> Int64:
        """The duration of each event without its direct children."""
        duration = host.end - host.start
        has_parent = self.parent >= 0
        inside = np.bincount(
            self.parent[has_parent], weights=duration[has_parent].astype(np.float64), minlength=len(host)
        )
        own: Int64 = np.maximum(duration - inside.astype(np.int64), 0)
        return own

    def chain(self, row: int) -> list[int]:
        """The event and what encloses it, innermost first."""
        found: list[int] = []
        while row >= 0 and len(found) <= _MAX_DEPTH:
            found.append(row)
            row = int(self.parent[row])
        return found

    def nearest(self, wanted: Array) -> Array:
        """For each event the nearest enclosing (or own) row where `wanted` holds; -1: there is none."""
        nearest = np.where(wanted, np.arange(len(wanted), dtype=np.int32), np.int32(NONE))
        for level in _levels(self.depth)[1:]:
            open_rows = level[nearest[level] == NONE]
            nearest[open_rows] = nearest[self.parent[open_rows]]
        return nearest


_MAX_DEPTH = 4096
"""Deeper than CPython's recursion limit lets a program be by default (1000 frames)."""


def nest(host: HostEvents) -> Nesting:
    """The call tree, from times alone: events on one thread enclose or follow one another."""
    order = np.lexsort((-host.end, host.start, host.thread)).astype(np.int32)
    parent = np.full(len(host), NONE, dtype=np.int32)
    depth = np.zeros(len(host), dtype=np.int32)
    threads = host.thread[order]
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(threads)) + 1, [len(order)]))
    for first, last in pairwise(bounds.tolist()):
        rows = order[first:last]
        if len(rows):
            above, level = _parents(host.start[rows], host.end[rows])
            parent[rows] = np.where(above >= 0, rows[above], NONE)
            depth[rows] = level
    return Nesting(parent, depth, order)


def _parents(start: Int64, end: Int64) -> tuple[Array, Array]:
    """Index of each event's parent and its depth, for events of one thread in order.

    The parent is the latest earlier event that ends no sooner. Events that overlap without one enclosing the
    other (an annotation begins inside one Python function and ends inside another) are so siblings.
    """
    # Twice the time plus one for empty events: so none of them begins and ends at the same moment.
    begin, finish = 2 * start, np.maximum(2 * end, 2 * start + 1)
    ended = np.searchsorted(np.sort(finish, kind="stable"), begin, side="right")
    depth = (np.arange(len(begin)) - ended).astype(np.int32)
    if int(depth.max(initial=0)) > _MAX_DEPTH:
        return _parents_one_by_one(finish)
    parent = np.full(len(begin), NONE, dtype=np.int32)
    for above, level in pairwise(_levels(depth)):
        parent[level] = above[np.searchsorted(above, level) - 1]
    nested = parent >= 0
    if np.any(finish[parent[nested]] < finish[nested]):
        return _parents_one_by_one(finish)
    return parent, depth


def _levels(depth: Array) -> list[Array]:
    order = np.argsort(depth, kind="stable").astype(np.int32)
    counts = np.bincount(depth) if len(depth) else np.zeros(1, dtype=np.int64)
    return np.split(order, np.cumsum(counts)[:-1])


def _parents_one_by_one(finish: Int64) -> tuple[Array, Array]:
    """The same for threads where events overlap without enclosing."""
    parent = [NONE] * len(finish)
    depth = [0] * len(finish)
    stack = [NONE]
    ends = [np.iinfo(np.int64).max]
    for index, until in enumerate(finish.tolist()):
        while ends[-1] < until:
            ends.pop()
            stack.pop()
        parent[index] = stack[-1]
        depth[index] = len(stack) - 1
        if len(stack) <= _MAX_DEPTH:
            stack.append(index)
            ends.append(until)
    return np.array(parent, dtype=np.int32), np.array(depth, dtype=np.int32)
