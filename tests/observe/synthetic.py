"""Timelines made by hand: what a program of a certain shape would have recorded, with times that are exact."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

from hotloop.observe.decode.spans import Timeline
from hotloop.probe.record.events import TIME_SHIFT, Kind, begin, end, size_event

MS = 1_000_000


class Script:
    """Writes the events of one process.

    Args:
        folder: where the event file goes.
        pid: the process.
    """

    def __init__(self, folder: Path, pid: int = 7) -> None:
        self.now = 0
        self._folder = folder
        self._pid = pid
        self._events = array("q")

    def wait(self, ms: float) -> Script:
        """Let time go by in no span."""
        self.now += int(ms * MS)
        return self

    def mark(self, code: int) -> Script:
        """Write one event now."""
        self._events.append(self.now << TIME_SHIFT | code)
        return self

    def span(self, kind: Kind, ms: float, slot: int = 0) -> Script:
        """Write a span of so many milliseconds."""
        return self.mark(begin(kind, slot)).wait(ms).mark(end(kind, slot))

    def size(self, samples: int, tokens: int = 0) -> Script:
        """Say the size of the batch that goes into the next forward."""
        self._events.append(size_event(samples, tokens))
        return self

    def made_optimizer(self) -> Script:
        """Say that an optimizer was constructed."""
        self._events.append(end(Kind.MADE))
        return self

    def train(self, num: int, *, data_ms: float = 1, loss_ms: float = 0, samples: int = 8) -> Script:
        """Take plain steps of data, 2 ms forward, 3 ms backward, 1 ms optimizer and 1 ms of anything else."""
        for _ in range(num):
            self.span(Kind.DATA, data_ms).size(samples).span(Kind.FORWARD, 2).wait(loss_ms)
            self.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1).wait(1)
        return self

    def write(self) -> None:
        """Write the files of a process, as they would be by now."""
        (self._folder / f"events-{self._pid}.json").write_text(json.dumps({"base_ns": 0}))
        (self._folder / f"events-{self._pid}.bin").write_bytes(self._events.tobytes())

    def timeline(self) -> Timeline:
        """Return what was written, read back."""
        self.write()
        timeline = Timeline(self._folder, self._pid)
        timeline.update()
        return timeline
