"""What disturbed a block on a device: other processes' kernels, slow-downs for heat or power supply, fallen clocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import TypeVar

import psutil

from hotloop.machine.devices.amd import open_amd
from hotloop.machine.devices.gpu import GpuReader, GpuSample
from hotloop.machine.devices.nvml import open_nvml
from hotloop.model.observation import DeviceMemory
from hotloop.stats.quietness import BUSY, is_busy

INTERVAL_S = 0.1
SHORTEST_LOOK_S = 1.0
"""NVML's samples of utilization cover a sixth of a second to a second: it cannot tell of less."""
MIN_CLOCK = 0.9
"""Of what the same arm had in its other blocks. Clocks differ between arms: who computes more draws more power."""
SLOWED = ("thermal", "hardware slowdown", "power brake")
"""Words of slow-downs that no program causes by its own load; a power cap is every busy device's usual state."""
_Result = TypeVar("_Result")


class DeviceNeighbours:
    """Looks at devices while a block runs.

    Args:
        reader: the driver; it may be asked from another thread.
        indices: the devices that the program uses, as the driver counts them.
        ours: returns the processes that are ours: frozen arms hold contexts, too.
        visible: returns all processes that can be seen here; in a container the driver may give others' numbers.
    """

    def __init__(
        self,
        reader: GpuReader,
        indices: Sequence[int],
        ours: Callable[[], Collection[int]] | None = None,
        visible: Callable[[], Collection[int]] = psutil.pids,
    ) -> None:
        self._reader = reader
        self._indices = tuple(indices)
        self._ours = ours or _own_tree
        self._visible = visible
        self._clocks: dict[tuple[int, int], list[float]] = {}

    def during(self, run: Callable[[], _Result], pid: int | None) -> tuple[_Result, str | None]:
        """Return what a block gave, and what disturbed it; None: nothing that the driver tells of.

        Args:
            run: runs the block.
            pid: of the arm whose block it is; None: its clocks are not compared with those of its other blocks.
        """
        seen: dict[int, list[GpuSample]] = {index: [] for index in self._indices}
        over = threading.Event()
        looker = threading.Thread(target=self._look, args=(seen, over), daemon=True)
        for index in self._indices:
            self._reader.process_shares(index)  # what was before does not count
        looker.start()
        try:
            result = run()
        finally:
            over.set()
            looker.join()
        reasons = (self._disturbed(index, samples, pid) for index, samples in seen.items())
        return result, next((reason for reason in reasons if reason), None)

    def _look(self, seen: dict[int, list[GpuSample]], over: threading.Event) -> None:
        while not over.wait(INTERVAL_S):
            for index, samples in seen.items():
                samples.append(self._reader.sample(index))

    def _disturbed(self, index: int, samples: Sequence[GpuSample], pid: int | None) -> str | None:
        return (
            self._by_others(index)
            or _slowed(index, samples)
            or self._by_clocks(index, [one.clock_hz for one in samples if one.clock_hz], pid)
        )

    def _by_others(self, index: int) -> str | None:
        shares = self._reader.process_shares(index)
        ours = set(self._ours())
        # Numbers of which none is known are the host's, and may be ours; beside ours, one that is gone was another's.
        if shares is None or (not ours & set(shares) and not set(shares) <= set(self._visible())):
            return None
        foreign = sum(share for pid, share in shares.items() if pid not in ours)
        return f"another process took {foreign:.0%} of GPU {index}" if is_busy(foreign) else None

    def _by_clocks(self, index: int, clocks_hz: Sequence[float], pid: int | None) -> str | None:
        if pid is None or not clocks_hz:
            return None
        known = self._clocks.setdefault((index, pid), [])
        now = median(clocks_hz)
        usual = median(known) if known else now
        known.append(now)
        if now >= MIN_CLOCK * usual:
            return None
        return f"GPU {index} ran at {now / 1e6:.0f} MHz, before at {usual / 1e6:.0f}"


@contextmanager
def watch_devices(devices: Sequence[DeviceMemory]) -> Iterator[DeviceNeighbours | None]:
    """Give what watches a program's devices for as long as the block runs; None: no driver tells of them."""
    with ExitStack() as stack:
        reader: GpuReader | None = stack.enter_context(open_nvml()) if devices else None
        if reader is None and devices:
            reader = stack.enter_context(open_amd())
        names = {device.uuid.removeprefix("GPU-").lower() for device in devices if device.uuid}
        known = reader.devices() if reader else []
        indices = [one.index for one in known if one.uuid in names or len(known) == 1]
        yield DeviceNeighbours(reader, indices) if reader and indices else None


def _slowed(index: int, samples: Sequence[GpuSample]) -> str | None:
    slowed = [
        reason
        for one in samples
        for reason in (one.throttle_reasons or ())
        if any(word in reason for word in SLOWED)
    ]
    return f"GPU {index}: {slowed[0]}" if len(slowed) > BUSY * len(samples) else None


def _own_tree() -> set[int]:
    top = psutil.Process()
    return {top.pid, *(child.pid for child in top.children(recursive=True))}
