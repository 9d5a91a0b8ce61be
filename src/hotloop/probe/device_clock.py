"""The same events on the device's own clock: with each event of ours one of the device's is put into its stream.

On a device the host runs ahead: what takes the host's time is not what takes the device's. The records of both clocks
have one format, so that whatever reads steps and phases reads either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol

from hotloop.probe.record.events import KIND_SHIFT, TIME_SHIFT, Kind
from hotloop.probe.record.recorder import Recorder

if TYPE_CHECKING:
    from hotloop.probe.probe import Probe

STEM = "device"
"""Of the files' names."""
MARK_NS = 60_000
"""What timing one pass costs on top of the host's timers: some ten events of 4 to 6 us each."""
_CODE = (1 << TIME_SHIFT) - 1
_TIMELESS = frozenset({Kind.SIZE, Kind.MADE, Kind.TORCH})


class Marker(Protocol):
    """An event of the device, as `torch.cuda.Event(enable_timing=True)` is one."""

    def record(self) -> None:
        """Put it into the current stream."""

    def query(self) -> bool:
        """Whether the device has passed it."""

    def elapsed_time(self, end_event: Marker, /) -> float:
        """Return the milliseconds from this event to another."""


class Device(Protocol):
    """What is asked of a device."""

    def marker(self) -> Marker:
        """Make an event."""

    def capturing(self) -> bool:
        """Whether the stream is being captured into a graph: it then takes no event and answers no question."""

    def synchronize(self) -> None:
        """Wait for it."""


class DeviceClock:
    """Follows a recorder.

    Args:
        recorder: whose events are timed on the device too.
        device: the device.
        folder: where `device-<pid>.bin` goes.
    """

    def __init__(self, recorder: Recorder, device: Device, folder: Path) -> None:
        self._device = device
        self._file = Recorder(folder, stem=STEM)
        self._file.base = recorder.base
        self._free: list[Marker] = []
        self._pending: deque[tuple[int, Marker | None]] = deque()
        device.synchronize()
        self._last = device.marker()
        self._last.record()
        device.synchronize()
        self._now_ns = monotonic_ns() - recorder.base

    def keep(self, event: int) -> None:
        """Put an event into the stream with one of the recorder's."""
        if (event & _CODE) >> KIND_SHIFT in _TIMELESS:
            self._pending.append((event, None))
        elif self._device.capturing():
            self._pending.append((event & _CODE, None))
        else:
            marker = self._free.pop() if self._free else self._device.marker()
            marker.record()
            self._pending.append((event & _CODE, marker))

    def flush(self) -> None:
        """Write what the device has passed."""
        if self._device.capturing():
            return
        pending = self._pending
        while pending:
            event, marker = pending[0]
            if marker is not None:
                if not marker.query():
                    break
                self._now_ns += max(0, round(self._last.elapsed_time(marker) * 1e6))
                self._free.append(self._last)
                self._last = marker
            timeless = (event & _CODE) >> KIND_SHIFT in _TIMELESS
            self._file.append(event if timeless else self._now_ns << TIME_SHIFT | event)
            pending.popleft()
        self._file.flush()


def start_when_used(probe: Probe, device: Device, in_use: Callable[[], bool]) -> None:
    """Begin to follow the recorder at the first boundary at which the program uses the device."""
    looks = probe.boundary.on_look

    def look(_: int) -> None:
        if not in_use() or device.capturing() or probe.folder is None:
            return
        looks.remove(look)
        with probe.survive("device_clock"):
            probe.recorder.follow(DeviceClock(probe.recorder, device, probe.folder))
            probe.boundary.pace.pass_ns += MARK_NS

    looks.append(look)


class Cuda:
    """A device that torch reaches by `torch.cuda`: NVIDIA's and AMD's."""

    def __init__(self) -> None:
        from torch import cuda

        self._cuda = cuda
        self.capturing: Callable[[], bool] = cuda.is_current_stream_capturing
        self.synchronize: Callable[[], None] = cuda.synchronize

    def marker(self) -> Marker:
        """Make an event."""
        event: Marker = self._cuda.Event(enable_timing=True)
        return event
