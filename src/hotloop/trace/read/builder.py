"""Lists of decoded events into the columns of a trace."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from hotloop.trace.read.clock import NO_TIME, ImpreciseError, Int64, nanoseconds, nanoseconds_from_text
from hotloop.trace.read.columns import NONE, Array, Interner, Table, column, integers
from hotloop.trace.read.event import Event, EventArgs, VerbatimEvent
from hotloop.trace.read.kinds import DEVICE_KINDS, HOST_KINDS, Kind, is_communication, kind_of
from hotloop.trace.read.metadata import read_metadata
from hotloop.trace.read.stream import EventStream
from hotloop.trace.read.trace import (
    Calls,
    DeviceAnnotations,
    DeviceEvents,
    HostEvents,
    MemoryEvents,
    Operators,
    SyncEvents,
    Tally,
    Trace,
)

_NO_ARGS = EventArgs()
_I64 = np.int64
_I32 = np.int32
_I8 = np.int8


class _Batch(NamedTuple):
    """Events of one sort, out of one list."""

    events: list[Event]
    kinds: Array
    start: Int64
    duration: Int64


class _Kinds(dict[tuple[str, str | None], int]):
    def __missing__(self, key: tuple[str, str | None]) -> int:
        code = int(kind_of(*key))
        self[key] = code
        return code


class TraceBuilder:
    """Takes events list by list; `finish` gives the trace."""

    def __init__(self) -> None:
        self._kinds = _Kinds()
        self._names = Interner()
        self._texts = Interner()
        self._threads = Interner()
        self._thread_names: dict[int, str] = {}
        self._tally = Tally()
        self._span: tuple[int, int] | None = None
        self._host = Table(kind=_I8, name=_I32, start=_I64, end=_I64, thread=_I32)
        self._operators = Table(
            row=_I32, external=_I64, sequence=_I64, forward_thread=_I64, dims=_I32, types=_I32,
            concrete=_I32, stack=_I32,
        )  # fmt: skip
        self._calls = Table(row=_I32, correlation=_I64, external=_I64)
        self._device = Table(
            kind=_I8, name=_I32, start=_I64, end=_I64, device=_I64, stream=_I64, correlation=_I64, external=_I64,
            size_bytes=_I64, grid=_I32, block=_I32, graph_node=_I64, collective=_I32, in_elements=_I64,
            out_elements=_I64, group=_I32, dtype=_I32,
        )  # fmt: skip
        self._memory = Table(
            start=_I64, moved_bytes=_I64, allocated=_I64, reserved=_I64, device_type=_I64, device_id=_I64
        )
        self._syncs = Table(
            name=_I32, start=_I64, end=_I64, device=_I64, stream=_I64, correlation=_I64, wait_stream=_I64,
            wait_record=_I64,
        )  # fmt: skip
        self._annotations = Table(name=_I32, start=_I64, end=_I64, device=_I64, stream=_I64)

    def add(self, events: list[Event], verbatim: Callable[[], list[VerbatimEvent]]) -> None:
        """Add the events of one list.

        Args:
            events: as decoded.
            verbatim: the same events with their times as text, asked for when floats are too coarse.
        """
        self._tally.num_events += len(events)
        if not any(event.ph for event in events):
            return  # no trace has a list without a single phase: this is filler
        kinds = self._kinds
        codes = np.array([kinds[event.ph, event.cat] for event in events], dtype=_I8)
        start, duration = _times(events, verbatim)
        valid = start != NO_TIME
        self._count(codes, valid)
        for kind, add in self._adders().items():
            rows = np.flatnonzero(np.isin(codes, kind) & valid)
            if len(rows):
                add(_Batch([events[i] for i in rows.tolist()], codes[rows], start[rows], duration[rows]))
        for i in np.flatnonzero(codes == Kind.META).tolist():
            self._add_metadata(events[i])

    def _adders(self) -> dict[tuple[int, ...], Callable[[_Batch], None]]:
        return {
            tuple(HOST_KINDS): self._add_host,
            tuple(DEVICE_KINDS): self._add_device,
            (Kind.MEMORY,): self._add_memory,
            (Kind.SYNC,): self._add_syncs,
            (Kind.DEVICE_ANNOTATION,): self._add_annotations,
            (Kind.SPAN,): self._add_span,
        }

    def _count(self, codes: Array, valid: Array) -> None:
        tally = self._tally
        counts = np.bincount(codes, minlength=len(Kind))
        tally.other += int(counts[Kind.OTHER])
        tally.flows += int(counts[Kind.FLOW])
        tally.unpaired += int(counts[Kind.UNPAIRED])
        tally.without_time += int(np.count_nonzero(~valid & (codes != Kind.META) & (codes != Kind.OTHER)))

    def _ends(self, start: Int64, duration: Int64) -> Int64:
        overflowing = duration == NO_TIME
        negative = (duration < 0) & ~overflowing
        self._tally.overflowing_duration += int(np.count_nonzero(overflowing))
        self._tally.negative_duration += int(np.count_nonzero(negative))
        return start + np.maximum(duration, 0)

    def _named(self, events: list[Event]) -> list[int]:
        names = self._names
        return [names[event.name] for event in events]

    def _add_host(self, batch: _Batch) -> None:
        first = self._host.num_rows
        threads = self._threads
        self._host.append(
            len(batch.events),
            {
                "kind": batch.kinds,
                "name": self._named(batch.events),
                "start": batch.start,
                "end": self._ends(batch.start, batch.duration),
                "thread": [threads[event.pid, event.tid] for event in batch.events],
            },
        )
        rows = np.flatnonzero(batch.kinds == Kind.CALL)
        if len(rows):
            self._add_calls(rows + first, [batch.events[i].args or _NO_ARGS for i in rows.tolist()])
        rows = np.flatnonzero((batch.kinds == Kind.OPERATOR) | (batch.kinds == Kind.ANNOTATION))
        if len(rows):
            self._add_operators(rows + first, [batch.events[i].args or _NO_ARGS for i in rows.tolist()])

    def _add_calls(self, rows: Array, args: list[EventArgs]) -> None:
        self._calls.append(
            len(args),
            {"row": rows, "correlation": column(args, "correlation"), "external": _external(args)},
        )

    def _add_operators(self, rows: Array, args: list[EventArgs]) -> None:
        self._operators.append(
            len(args),
            {
                "row": rows,
                "external": _external(args),
                "sequence": column(args, "sequence"),
                "forward_thread": column(args, "forward_thread"),
                "dims": self._text([a.dims for a in args]),
                "types": self._text([a.types for a in args]),
                "concrete": self._text([a.concrete for a in args]),
                "stack": self._text([a.stack for a in args]),
            },
        )

    def _text(self, values: list[Any]) -> list[int]:
        texts = self._texts
        unset = msgspec.UNSET
        return [NONE if value is unset else texts[bytes(value)] for value in values]

    def _optional_names(self, values: list[Any]) -> list[int]:
        names = self._names
        return [NONE if value is None else names[str(value)] for value in values]

    def _add_device(self, batch: _Batch) -> None:
        args = [event.args or _NO_ARGS for event in batch.events]
        end = self._ends(batch.start, batch.duration)
        self._tally.zero_kernels += int(np.count_nonzero((end == batch.start) & (batch.kinds == Kind.KERNEL)))
        device, stream = _place(batch.events, args)
        self._device.append(
            len(batch.events),
            {
                "kind": batch.kinds,
                "name": self._named(batch.events),
                "start": batch.start,
                "end": end,
                "device": device,
                "stream": stream,
                "correlation": column(args, "correlation"),
                "external": _external(args),
                "size_bytes": column(args, "size_bytes"),
                "grid": self._text([a.grid for a in args]),
                "block": self._text([a.block for a in args]),
                "graph_node": column(args, "graph_node"),
                "collective": self._optional_names([a.collective for a in args]),
                "in_elements": column(args, "in_elements"),
                "out_elements": column(args, "out_elements"),
                "group": self._optional_names([a.group for a in args]),
                "dtype": self._optional_names([a.dtype for a in args]),
            },
        )

    def _add_memory(self, batch: _Batch) -> None:
        chosen = [
            i for i, event in enumerate(batch.events) if event.name == "[memory]" and event.args is not None
        ]
        if not chosen:
            return
        args = [batch.events[i].args or _NO_ARGS for i in chosen]
        self._memory.append(
            len(args),
            {
                "start": batch.start[chosen],
                "moved_bytes": column(args, "moved_bytes", 0),
                "allocated": column(args, "allocated"),
                "reserved": column(args, "reserved"),
                "device_type": column(args, "device_type"),
                "device_id": column(args, "device_id"),
            },
        )

    def _add_syncs(self, batch: _Batch) -> None:
        args = [event.args or _NO_ARGS for event in batch.events]
        device, stream = _place(batch.events, args)
        self._syncs.append(
            len(batch.events),
            {
                "name": self._named(batch.events),
                "start": batch.start,
                "end": self._ends(batch.start, batch.duration),
                "device": device,
                "stream": stream,
                "correlation": column(args, "correlation"),
                "wait_stream": column(args, "wait_stream"),
                "wait_record": column(args, "wait_record"),
            },
        )

    def _add_annotations(self, batch: _Batch) -> None:
        device, stream = _place(batch.events, [event.args or _NO_ARGS for event in batch.events])
        self._annotations.append(
            len(batch.events),
            {
                "name": self._named(batch.events),
                "start": batch.start,
                "end": self._ends(batch.start, batch.duration),
                "device": device,
                "stream": stream,
            },
        )

    def _add_span(self, batch: _Batch) -> None:
        self._span = (int(batch.start[0]), int(batch.start[0] + max(int(batch.duration[0]), 0)))

    def _add_metadata(self, event: Event) -> None:
        if event.name == "thread_name" and event.args is not None and isinstance(event.args.name, str):
            self._thread_names[self._threads[event.pid, event.tid]] = event.args.name.strip()

    def finish(self, label: str, stream: EventStream, damage: str | None) -> Trace:
        """The trace, once all events have been added."""
        names: list[str] = self._names.values_in_order
        device = self._device.finish()
        named_communication = np.array([is_communication(name) for name in names] or [False])
        kernels = device["kind"] == Kind.KERNEL
        return Trace(
            label=label,
            names=names,
            texts=self._texts.values_in_order,
            threads=self._threads.values_in_order,
            thread_names=self._thread_names,
            host=HostEvents(**self._host.finish()),
            operators=Operators(**self._operators.finish()),
            calls=Calls(**self._calls.finish()),
            device=DeviceEvents(**device, is_communication=kernels & named_communication[device["name"]]),
            memory=MemoryEvents(**self._memory.finish()),
            syncs=SyncEvents(**self._syncs.finish()),
            annotations=DeviceAnnotations(**self._annotations.finish()),
            metadata=read_metadata(stream.metadata, label),
            loss=stream.loss,
            tally=self._tally,
            damage=damage,
            num_bytes=stream.num_bytes,
            span=self._span,
        )


def _times(events: list[Event], verbatim: Callable[[], list[VerbatimEvent]]) -> tuple[Int64, Int64]:
    try:
        return nanoseconds([event.ts for event in events]), nanoseconds([event.dur for event in events])
    except ImpreciseError:
        texts = verbatim()
    if len(texts) == len(events):
        return (
            nanoseconds_from_text([event.ts for event in texts]),
            nanoseconds_from_text([event.dur for event in texts]),
        )
    # A salvaged list has no text to go back to: the float as it was decoded is all there is.
    return _from_repr([event.ts for event in events]), _from_repr([event.dur for event in events])


def _from_repr(values: list[int | float | None]) -> Int64:
    return nanoseconds_from_text([msgspec.Raw(repr(value).encode()) for value in values])


def _external(args: list[EventArgs]) -> Int64:
    return integers([a.external if a.external is not None else a.external_old for a in args])


def _place(events: list[Event], args: list[EventArgs]) -> tuple[Int64, Int64]:
    """Device and stream; where the arguments do not say, the process and thread stand for them."""
    device = integers([e.pid if a.device is None else a.device for e, a in zip(events, args, strict=True)], 0)
    stream = integers([e.tid if a.stream is None else a.stream for e, a in zip(events, args, strict=True)], 0)
    return device, stream
