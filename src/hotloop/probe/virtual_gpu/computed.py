"""Configurations that are computed from the account of one that ran: sharded, offloaded, with 8-bit states.

The program's own sequence of allocations is replayed with other sizes. What a class of storages becomes is by the
published formulas: ZeRO (Rajbhandari et al. 2020, section 3: states, gradients, parameters over N, by stage), DDP's
buckets (gradients once more), FSDP2's unsharded groups, bitsandbytes' block-wise 8-bit states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.probe.virtual_gpu.storages import Record

BLOCK_8BIT = 256
"""Elements that share a scale of four bytes (bitsandbytes: block-wise quantization of optimizer states)."""
SMALLEST_8BIT = 4096
"""Elements from which a state is kept in 8 bits (bitsandbytes: `min_8bit_size`)."""
BUCKET = 25 << 20
"""DDP's `bucket_cap_mb`."""
COPIES = -2
"""Key of the first block that is no storage of the program's."""

Sequences = tuple[list[tuple[int, int]], list[tuple[int, int]]]


class Computed:
    """One computed configuration.

    Args:
        order: `{"over", "sharded", "states", "buckets", "gathered"}`: over N devices, which classes are sharded,
            states None, "8-bit" or "offloaded", gradients once more in buckets, parameters gathered block by block.
        records: of all storages.
        class_of: a storage's class by its number.
        groups: bytes of the parameters that are outside blocks, of the largest block, and the most that are trained in
            one block; without blocks in the model.
    """

    def __init__(
        self,
        order: dict[str, Any],
        records: Sequence[Record],
        class_of: Callable[[int], str],
        groups: tuple[int, int, int],
    ) -> None:
        self._order = order
        self._records = records
        self._class_of = class_of
        self._groups = groups

    def sequences(self, kept: list[int], events: list[tuple[int, int]]) -> Sequences:
        """Return what is there before and what happens then, with the sizes of this configuration."""
        before = [(number, self._size(number)) for number in kept]
        during = [
            (number, self._size(number) if change >= 0 else -self._size(number)) for number, change in events
        ]
        if self._order.get("buckets"):
            gradients = self._total("gradients", kept, events)
            num = max(1, math.ceil(gradients / BUCKET))
            before += [(COPIES - index, gradients // num) for index in range(num)]
        if self._order.get("gathered"):
            during = self._with_gathered(during)
        return before, during

    def _size(self, number: int) -> int:
        record, name = self._records[number], self._class_of(number)
        states, size = self._order.get("states"), record.num_bytes
        if states and name == "temporaries" and record.phase == "optimizer":
            return 0  # a kernel for each parameter, or the host's
        if name == "optimizer_state" and states == "offloaded":
            return 0
        if name == "optimizer_state" and states == "8-bit":
            size = _in_8_bits(record)
        of_states = name == "temporaries" and record.phase == "optimizer"
        is_sharded = ("optimizer_state" if of_states else name) in self._order.get("sharded", ())
        return math.ceil(size / self._order.get("over", 1)) if is_sharded else size

    def _total(self, name: str, kept: list[int], events: list[tuple[int, int]]) -> int:
        """Return the most bytes of a class that are alive at once."""
        live = {number for number in kept if self._class_of(number) == name}
        size = most = sum(self._records[number].num_bytes for number in live)
        for number, change in events:
            if self._class_of(number) == name:
                size += change
                most = max(most, size)
        return most

    def _with_gathered(self, events: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Add what a forward and a backward gather: what is outside blocks, two blocks, and the gradients of one."""
        outside, block, trained = self._groups
        copies = [(COPIES, outside), (COPIES - 1, 2 * block), (COPIES - 2, trained)]
        result: list[tuple[int, int]] = []
        gathered = False
        for number, change in events:
            phase = self._records[number].phase
            if change >= 0 and not gathered and phase == "forward":
                gathered, result = True, [*result, *copies]
            elif change >= 0 and gathered and phase == "optimizer":
                gathered, result = False, [*result, *((key, -size) for key, size in copies)]
            result.append((number, change))
        return result


def _in_8_bits(record: Record) -> int:
    elements = record.num_bytes // max(1, record.itemsize)
    return elements + 4 * math.ceil(elements / BLOCK_8BIT) if elements >= SMALLEST_8BIT else record.num_bytes
