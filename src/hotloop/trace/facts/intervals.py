"""Sets of time intervals, as sorted arrays without overlap; everything exact in integer nanoseconds."""

from dataclasses import dataclass

import numpy as np

from hotloop.trace.read.clock import Int64


@dataclass(frozen=True)
class Intervals:
    """Disjoint, non-empty, sorted intervals."""

    start: Int64
    end: Int64

    def __len__(self) -> int:
        """How many intervals there are."""
        return len(self.start)

    @property
    def total(self) -> int:
        """Their length together."""
        return int(np.sum(self.end - self.start))

    def before(self, moments: Int64) -> Int64:
        """How much of the set lies before each moment."""
        if not len(self.start):
            return np.zeros(len(moments), dtype=np.int64)
        lengths = np.concatenate(([0], np.cumsum(self.end - self.start)))
        index = np.searchsorted(self.start, moments, side="right")
        last = np.maximum(index - 1, 0)
        inside = np.clip(moments - self.start[last], 0, self.end[last] - self.start[last])
        return np.where(index > 0, lengths[last] + inside, 0).astype(np.int64)

    def within(self, start: Int64, end: Int64) -> Int64:
        """How much of the set lies in each of the given intervals, which may overlap."""
        return self.before(end) - self.before(start)


NOTHING = Intervals(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def union(start: Int64, end: Int64) -> Intervals:
    """What at least one of the intervals covers; touching ones become one."""
    keep = end > start
    start, end = start[keep], end[keep]
    if not len(start):
        return NOTHING
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    fresh = np.concatenate(([True], start[1:] > end[:-1]))
    last = np.concatenate((np.flatnonzero(fresh)[1:] - 1, [len(start) - 1]))
    return Intervals(start[fresh], end[last])


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What lies in both sets."""
    if not len(a) or not len(b):
        return NOTHING
    first = np.searchsorted(b.end, a.start, side="right")
    last = np.searchsorted(b.start, a.end, side="left")
    counts = np.maximum(last - first, 0)
    left = np.repeat(np.arange(len(a)), counts)
    right = (
        np.arange(int(counts.sum()))
        - np.repeat(np.cumsum(counts) - counts, counts)
        + np.repeat(first, counts)
    )
    return Intervals(np.maximum(a.start[left], b.start[right]), np.minimum(a.end[left], b.end[right]))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What lies in the first set and not in the second."""
    if not len(a) or not len(b):
        return a
    return intersect(a, complement(b, int(a.start[0]), int(a.end[-1])))


def complement(inside: Intervals, low: int, high: int) -> Intervals:
    """The gaps between `low` and `high`."""
    start = np.concatenate(([low], np.clip(inside.end, low, high)))
    end = np.concatenate((np.clip(inside.start, low, high), [high]))
    keep = end > start
    return Intervals(start[keep].astype(np.int64), end[keep].astype(np.int64))


def clip(inside: Intervals, low: int, high: int) -> Intervals:
    """The part between `low` and `high`."""
    start, end = np.clip(inside.start, low, high), np.clip(inside.end, low, high)
    keep = end > start
    return Intervals(start[keep], end[keep])
