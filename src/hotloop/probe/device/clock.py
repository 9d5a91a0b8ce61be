"""The same events on the device's own clock: with each event of ours one of the device's is put into its stream.

On a device the host runs ahead: what takes the host's time is not what takes the device's. The records of both clocks
have one format, so that whatever reads steps and phases reads either.

Times are counted from an anchor, never from the event before: a program's streams are not in step, and an error
made once would be carried on. What lies earlier than what came before it (the program has changed its stream) takes the
earlier event's time. The events go into the stream that trains: while a prefetcher has made its own stream
current they do not follow it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from hotloop.probe.device.device import Device, Marker
from hotloop.probe.record.events import KIND_SHIFT, TIME_SHIFT, Kind
from hotloop.probe.record.recorder import Recorder

if TYPE_CHECKING:
    from hotloop.probe.probe import Probe

STEM = "device"
"""Of the files' names."""
MARK_NS = 60_000
"""What timing one pass costs on top of the host's timers: some ten events of 4 to 6 us each."""
ANCHOR_MS = 4096.0
"""The device gives times as 32-bit floats of milliseconds: beyond this they are coarser than half a microsecond, which
is the clock's own step. A later event is then the new anchor; a day's 21,000 anchors add up to some 40 us."""
_CODE = (1 << TIME_SHIFT) - 1
_TIMELESS = frozenset({Kind.SIZE, Kind.MADE, Kind.TORCH})
_TRAINS = frozenset({Kind.FORWARD, Kind.SCORE, Kind.EVALUATE, Kind.BACKWARD, Kind.OPTIMIZER})
"""Happen on the stream that trains, whichever it is; a fetch or a copy may happen on a side stream."""


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
        self._stream: Any = device.stream()
        device.synchronize()
        self._anchor = device.marker()
        self._anchor.record(self._stream)
        device.synchronize()
        self._anchor_ns = self._now_ns = monotonic_ns() - recorder.base

    def keep(self, event: int) -> None:
        """Put an event into the stream with one of the recorder's."""
        kind = (event & _CODE) >> KIND_SHIFT
        if kind in _TIMELESS:
            self._pending.append((event, None))
        elif self._device.capturing():
            self._pending.append((event & _CODE, None))
        else:
            if kind in _TRAINS:
                self._stream = self._device.stream()
            marker = self._free.pop() if self._free else self._device.marker()
            marker.record(self._stream)
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
                self._pass(marker)
            timeless = (event & _CODE) >> KIND_SHIFT in _TIMELESS
            self._file.append(event if timeless else self._now_ns << TIME_SHIFT | event)
            pending.popleft()
        self._file.flush()

    def _pass(self, marker: Marker) -> None:
        """Go on to the time of an event that the device has passed."""
        since_ms = self._anchor.elapsed_time(marker)
        at_ns = self._anchor_ns + round(since_ms * 1e6)
        self._now_ns = max(self._now_ns, at_ns)
        if since_ms < ANCHOR_MS:
            self._free.append(marker)
            return
        self._free.append(self._anchor)
        self._anchor, self._anchor_ns = marker, at_ns


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
