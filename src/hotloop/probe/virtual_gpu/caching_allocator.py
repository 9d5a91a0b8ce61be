"""A model of torch's caching allocator for one stream: what it reserves for a sequence of allocations.

After c10/cuda/CUDACachingAllocator.cpp: sizes are rounded to 512 bytes; blocks of up to 1 MiB come from segments of
2 MiB, larger ones from segments of 20 MiB, and from 10 MiB on from segments of their own, rounded to 2 MiB; the
smallest free block that fits is taken, split, and merged again with its free neighbours.
"""

from __future__ import annotations

import bisect

KIB, MIB = 1 << 10, 1 << 20
ROUNDING = 512
SMALL = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT_FROM = 10 * MIB
OWN_SEGMENT_ROUNDING = 2 * MIB


class OutOfMemory(Exception):  # noqa: N818 - an answer of the model
    """A request that does not fit on the device.

    Args:
        requested: bytes asked for.
        allocated: bytes in use then.
        reserved: bytes held by the allocator then.
    """

    def __init__(self, requested: int, allocated: int, reserved: int) -> None:
        super().__init__(requested)
        self.requested = requested
        self.allocated = allocated
        self.reserved = reserved


class _Block:
    """A piece of a segment, in use or free; neighbours of one segment are linked."""

    __slots__ = ("after", "before", "free", "size", "small")

    def __init__(
        self, size: int, *, small: bool, before: _Block | None = None, after: _Block | None = None
    ) -> None:
        self.size = size
        self.small = small
        self.before = before
        self.after = after
        self.free = True

    def is_whole_segment(self) -> bool:
        return self.before is None and self.after is None


class _Pool:
    """The free blocks of one kind, the smallest first."""

    def __init__(self) -> None:
        self._sorted: list[tuple[int, int, _Block]] = []
        self._number = 0

    def add(self, block: _Block) -> None:
        self._number += 1
        bisect.insort(self._sorted, (block.size, self._number, block))

    def take(self, size: int) -> _Block | None:
        """Remove and return the smallest block of at least `size` bytes; None: there is none."""
        at = bisect.bisect_left(self._sorted, size, key=lambda entry: entry[0])
        return self._sorted.pop(at)[2] if at < len(self._sorted) else None

    def remove(self, block: _Block) -> None:
        at = bisect.bisect_left(self._sorted, block.size, key=lambda entry: entry[0])
        while self._sorted[at][2] is not block:
            at += 1
        del self._sorted[at]

    def whole_segments(self) -> list[_Block]:
        return [block for _, _, block in self._sorted if block.is_whole_segment()]


class CachingAllocator:
    """Answers allocations as torch's allocator would.

    Args:
        limit: bytes that it may reserve; None: no limit.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._pools = {True: _Pool(), False: _Pool()}
        self._used: dict[int, _Block] = {}
        self.allocated = 0
        self.reserved = 0
        self.peak_allocated = 0
        self.peak_reserved = 0
        self.told_allocated = 0
        """The peak since the program reset it, as is the next one."""
        self.told_reserved = 0
        self.num_retries = 0
        """Times that free segments were given back to the device because a request did not fit."""

    def allocate(self, key: int, num_bytes: int) -> None:
        """Serve one request.

        Args:
            key: to free it by.
            num_bytes: asked for; nothing is allocated for none.

        Raises:
            OutOfMemory: it does not fit, free segments given back.
        """
        if not num_bytes:
            return
        size = -(-num_bytes // ROUNDING) * ROUNDING
        small = size <= SMALL
        block = self._pools[small].take(size) or self._segment(size, small=small)
        block.free = False
        self._split(block, size)
        self._used[key] = block
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        self.told_allocated = max(self.told_allocated, self.allocated)

    def free(self, key: int) -> None:
        """Give a block back, merged with its free neighbours."""
        block = self._used.pop(key, None)
        if block is None:
            return
        self.allocated -= block.size
        block.free = True
        pool = self._pools[block.small]
        before, after = block.before, block.after
        if before is not None and before.free:
            pool.remove(before)
            block.size += before.size
            block.before = before.before
            if block.before is not None:
                block.before.after = block
        if after is not None and after.free:
            pool.remove(after)
            block.size += after.size
            block.after = after.after
            if block.after is not None:
                block.after.before = block
        pool.add(block)

    def reset_peaks(self) -> None:
        """Forget the peaks that the program is told, as `reset_peak_memory_stats` does."""
        self.told_allocated, self.told_reserved = self.allocated, self.reserved

    def empty_cache(self) -> None:
        """Give segments that nothing uses back to the device."""
        for pool in self._pools.values():
            for block in pool.whole_segments():
                pool.remove(block)
                self.reserved -= block.size

    def _segment(self, size: int, *, small: bool) -> _Block:
        if small:
            wanted = SMALL_SEGMENT
        elif size < OWN_SEGMENT_FROM:
            wanted = LARGE_SEGMENT
        else:
            wanted = -(-size // OWN_SEGMENT_ROUNDING) * OWN_SEGMENT_ROUNDING
        if self._limit is not None and self.reserved + wanted > self._limit:
            self.num_retries += 1
            self.empty_cache()
            if self.reserved + wanted > self._limit:
                raise OutOfMemory(size, self.allocated, self.reserved)
        self.reserved += wanted
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        self.told_reserved = max(self.told_reserved, self.reserved)
        return _Block(wanted, small=small)

    def _split(self, block: _Block, size: int) -> None:
        rest = block.size - size
        if rest < ROUNDING if block.small else rest <= SMALL:
            return
        remainder = _Block(rest, small=block.small, before=block, after=block.after)
        if block.after is not None:
            block.after.before = remainder
        block.after = remainder
        block.size = size
        self._pools[block.small].add(remainder)
