"""Decode one process's event file into spans, as it grows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hotloop.probe.device.clock import STEM
from hotloop.probe.record.events import END, KIND_SHIFT, MAX_SLOT, TIME_SHIFT, TOKEN_BITS, Kind, begin

NS = 1e-9
HOST, DEVICE = "events", STEM
HELPERS = frozenset({Kind.IMPORT, Kind.LOG, Kind.WORKERS_END})
"""What a process does that does not train, too."""
APART = {int(Kind.DEEP): "deep", int(Kind.LEAN): "lean", int(Kind.COLLECT): "collections"}
"""What nests in nothing, and the list that keeps it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that began and ended in the training thread; times in seconds of the machine's monotonic clock."""

    kind: Kind
    slot: int
    begin_s: float
    end_s: float
    exclusive_s: float
    """Its time without that of the spans inside it, so that phases do not add up twice."""
    depth: int
    unasked: bool = False
    """Of an evaluation's forward: it kept a graph, and no backward followed."""

    @property
    def duration_s(self) -> float:
        """End minus beginning."""
        return self.end_s - self.begin_s


class Size(NamedTuple):
    """The batch that a forward was given."""

    begin_s: float
    """When that forward began."""
    kind: Kind
    slot: int
    depth: int
    samples: int
    tokens: int


class Stretch(NamedTuple):
    """A window of a profiler, or a rest in which the phases pass unrecorded."""

    number: int
    """Of the instrument."""
    begin_s: float
    end_s: float
    """Infinite while it is open: the program ended in it."""


@dataclass(slots=True)
class _Open:
    code: int
    begin_s: float
    inside_s: float = 0.0


@dataclass
class Timeline:
    """The spans of one process, in the order of their ends.

    Args:
        folder: the scratch folder of the run.
        pid: the process.
        clock: `HOST`, or `DEVICE`: the same events as the device came to them.
    """

    folder: Path
    pid: int
    clock: str = HOST
    spans: list[Span] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    torch_s: float | None = None
    """When `import torch` had finished."""
    python_s: float | None = None
    """When the interpreter had started; None: not known."""
    exit_s: float | None = None
    """When the interpreter began to shut down; None: it did not, or was ended from outside."""
    is_command: bool = False
    """Whether this is the process of the command itself, and none that it started."""
    deep: list[Stretch] = field(default_factory=list)
    """The windows of profilers."""
    lean: list[Stretch] = field(default_factory=list)
    """The rests."""
    collections: list[Stretch] = field(default_factory=list)
    """The garbage collector's passes over all objects."""
    optimizers_made: int = 0
    num_loop_spans: int = 0
    """Of those, the ones of a loop: what helpers do too is left out."""
    _base_s: float = 0.0
    _read: int = 0
    _open: list[_Open] = field(default_factory=list)
    _size: tuple[int, int] | None = None
    _scored: list[int] = field(default_factory=list)
    """The forwards with gradients in evaluation mode since the last training forward or backward, by their places."""

    def __post_init__(self) -> None:  # noqa: D105
        header = json.loads((self.folder / f"{self.clock}-{self.pid}.json").read_text())
        self.torch_s = self._base_s = header["base_ns"] * NS
        self.is_command = header.get("is_command", False)
        python_ns = header.get("python_ns")
        self.python_s = None if python_ns is None else python_ns * NS

    @property
    def held_s(self) -> float | None:
        """Since when the probe has held the program at a step boundary; None: it does not."""
        return next((each.begin_s for each in self._open if each.code == begin(Kind.PAUSE)), None)

    @property
    def may_optimize(self) -> bool:
        """Whether the process made an optimizer, or is inside a step of one."""
        return self.optimizers_made > 0 or any(
            opened.code >> KIND_SHIFT == Kind.OPTIMIZER for opened in self._open
        )

    def update(self) -> None:
        """Read what was written since the last time."""
        with (self.folder / f"{self.clock}-{self.pid}.bin").open("rb") as file:
            file.seek(self._read)
            raw = file.read()
        whole = len(raw) // 8 * 8
        self._read += whole
        events = np.frombuffer(raw[:whole], dtype=np.int64)
        times = (events >> TIME_SHIFT).tolist()
        codes = (events & ((1 << TIME_SHIFT) - 1)).tolist()
        for time, code in zip(times, codes, strict=True):
            self._take(time, code)

    def _take(self, time: int, code: int) -> None:
        kind = code >> KIND_SHIFT
        if kind == Kind.SIZE:
            self._size = (time >> TOKEN_BITS, time & ((1 << TOKEN_BITS) - 1))
            return
        if kind == Kind.TORCH:
            return
        if kind == Kind.MADE:
            self.optimizers_made += 1
            return
        now = self._base_s + time * NS
        if kind == Kind.EXIT:
            self.exit_s = now
            return
        if kind == Kind.REQUEST:
            self.spans.append(Span(Kind.REQUEST, 0, now, now, 0.0, len(self._open)))
            return
        apart = APART.get(kind)
        if apart is not None:
            self._stretch(getattr(self, apart), code, now)
            return
        if code & END:
            self._close(code & ~END, now)
            return
        if self._size is not None:
            self.sizes.append(Size(now, _known_as(Kind(kind)), code & MAX_SLOT, len(self._open), *self._size))
            self._size = None
        self._open.append(_Open(code, now))

    def _stretch(self, kept: list[Stretch], code: int, now: float) -> None:
        """Keep it apart from the spans: it begins inside one and ends inside another (an optimizer's closure)."""
        if code & END and kept:
            kept[-1] = kept[-1]._replace(end_s=now)
        else:
            kept.append(Stretch(code & MAX_SLOT, now, float("inf")))

    def _close(self, code: int, now: float) -> None:
        # An exception in the program leaves spans open: everything above the matching beginning is dropped.
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].code == code:
                break
        else:
            return
        opened = self._open[index]
        del self._open[index:]
        duration = now - opened.begin_s
        if self._open:
            self._open[-1].inside_s += duration
        kind, slot = Kind(code >> KIND_SHIFT), code & MAX_SLOT
        self._tell_scores(kind)
        self.spans.append(
            Span(
                _known_as(kind),
                slot,
                opened.begin_s,
                now,
                duration - opened.inside_s,
                len(self._open),
                unasked=kind is Kind.SCORE,
            )
        )
        self.num_loop_spans += kind not in HELPERS

    def _tell_scores(self, kind: Kind) -> None:
        """Tell forwards in evaluation mode that belong to an evaluation from those that a backward follows.

        Nothing says which of them a backward goes through: it is taken to be those that had the last batch.
        """
        if kind is Kind.SCORE:
            self._scored.append(len(self.spans))
        elif kind is Kind.FORWARD:
            self._scored.clear()
        elif kind is Kind.BACKWARD:
            since = range(len(self.spans) - 1, min(self._scored, default=len(self.spans)), -1)
            fetched = next((at for at in since if self.spans[at].kind is Kind.DATA), -1)
            last = [at for at in self._scored if at > fetched] or self._scored[-1:]
            for at in last:
                self.spans[at] = replace(self.spans[at], kind=Kind.FORWARD, unasked=False)
            self._scored.clear()


def _known_as(kind: Kind) -> Kind:
    """A forward in evaluation mode counts as evaluation until a backward follows it."""
    return Kind.EVALUATE if kind is Kind.SCORE else kind


def timelines(folder: Path, known: dict[int, Timeline], clock: str = HOST) -> dict[int, Timeline]:
    """Return the timelines of all processes that recorded, the known ones brought up to date."""
    for path in folder.glob(f"{clock}-*.bin"):
        pid = int(path.stem.split("-")[1])
        if pid not in known:
            known[pid] = Timeline(folder, pid, clock)
    for timeline in known.values():
        timeline.update()
    return known
