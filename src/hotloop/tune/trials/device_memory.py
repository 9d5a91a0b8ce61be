"""Whether arms have room beside one another on the devices that the program uses.

A frozen process keeps all that torch's allocator reserved, and its context. What counts is therefore arms x (reserved +
context) on each device, against what is free there now: other programs and arms that live on have taken their part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hotloop.machine.devices.free_memory import FreeMemory, free_memory
from hotloop.model.observation import DeviceMemory

HEADROOM = 1.03
"""Of what an arm took when it was observed: an allocator that must give back and ask again is slow, unseen."""
LOOKS, LOOK_S = 8, 0.25
"""A driver gives the memory of a process that was killed back a moment later; so long is waited for it."""


class DeviceBudget:
    """The memory of the devices that a program uses.

    Args:
        needs: what one run of the program takes of each; empty: it runs on the CPU.
        ask: returns what is free on each device by its driver, where one answers.
        pause: sleeps.
    """

    def __init__(
        self,
        needs: Sequence[DeviceMemory],
        ask: Callable[[], Sequence[FreeMemory]] = free_memory,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._ask = ask
        self._pause = pause
        self._needs = tuple(needs)
        before = ask() if needs else ()
        self._bytes = tuple(_of_one_arm(need, before) for need in self._needs)

    def fits(self, num_new: int, num_alive: int) -> bool:
        """Whether so many more arms have room on every device, beside those that are alive."""
        for _ in range(LOOKS):
            if self._fits_now(num_new, num_alive):
                return True
            self._pause(LOOK_S)
        return self._fits_now(num_new, num_alive)

    def _fits_now(self, num_new: int, num_alive: int) -> bool:
        known = self._ask() if self._needs else ()
        return all(
            (HEADROOM if num_new + num_alive > 1 else 1.0) * num_new * each
            <= _free(need, each, known, num_alive)
            for need, each in zip(self._needs, self._bytes, strict=True)
        )


def _of_one_arm(need: DeviceMemory, before: Sequence[FreeMemory]) -> int:
    """Memory beside torch's reserved bytes: the context, and what other processes hold.

    The total is CUDA's: what the driver keeps for itself is in NVML's total and in what it calls used, and in neither
    of CUDA's.
    """
    row = _row_of(need, before)
    others = max(0, need.total_bytes - row.free_bytes) if row else 0
    return need.reserved_bytes + max(0, need.beside_bytes - others)


def _free(need: DeviceMemory, each: int, known: Sequence[FreeMemory], num_alive: int) -> int:
    row = _row_of(need, known)
    return row.free_bytes if row else need.total_bytes - num_alive * each


def _row_of(need: DeviceMemory, rows: Sequence[FreeMemory]) -> FreeMemory | None:
    """Return the driver's row of a device; by its own name, since the driver counts devices in another order."""
    named = [
        row for row in rows if need.uuid is not None and row.uuid == need.uuid.removeprefix("GPU-").lower()
    ]
    if named:
        return named[0]
    alike = [row for row in rows if row.total_bytes == need.total_bytes]
    return alike[0] if len(alike) == 1 else None
