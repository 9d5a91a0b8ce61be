"""What is wrong with a trace, or missing from it: said before any figure."""

import re
from collections.abc import Sequence

import msgspec
import numpy as np

from hotloop.trace.facts.steps import Step
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.columns import NONE
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import Trace


class HealthNote(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to know before believing the figures."""

    code: str
    """In kebab case: `unlinked-kernels`."""
    severity: str
    """info: part of the picture is missing; warning: figures are affected; error: there are none."""
    message: str
    num: int | None = None
    """Events or steps concerned."""
    total: int | None = None
    """Out of how many; None: not a share of something."""


_GRAPH_LAUNCH = re.compile(r"GraphLaunch")


def health_notes(linked: LinkedTrace, steps: tuple[Step, ...]) -> tuple[HealthNote, ...]:
    """All notes, errors first."""
    trace = linked.trace
    notes = [
        *_file_notes(trace),
        *_time_notes(trace),
        *_link_notes(linked),
        *_step_notes(trace, steps),
        *_gaps(trace),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(notes, key=lambda note: order[note.severity]))


def failure(notes: Sequence[HealthNote]) -> str | None:
    """Why a trace gives no figures; None: it gives some."""
    return next((note.message for note in notes if note.severity == "error"), None)


def lacks_device_work(notes: Sequence[HealthNote]) -> bool:
    """Whether the device did notably more than the trace shows: its idle time is then an upper bound."""
    return any(_hides_work(note) for note in notes)


def _hides_work(note: HealthNote) -> bool:
    if note.code in {"lost-events", "dropped-kernels"}:
        return (note.num or 0) >= _NOTABLE * (note.total or 0)
    return note.code in {"truncated", "damaged-file"} or (note.code, note.severity) == (
        "graph-replays",
        "warning",
    )


_NOTABLE = 0.02
"""Of events or launches: at the end of its window each profiler loses some."""


def _file_notes(trace: Trace) -> list[HealthNote]:
    loss, notes = trace.loss, []
    if loss.unreadable:
        notes.append(_note("not-a-trace", "error", f"This is not a readable trace: {loss.unreadable}."))
    if trace.damage:
        notes.append(_note("damaged-file", "warning", f"Read up to the damage: {trace.damage}."))
    if loss.truncated:
        notes.append(
            _note(
                "truncated",
                "warning",
                "The file ends before its list of events does; what is there was read.",
            )
        )
    if loss.repairs:
        kinds = ", ".join(
            f"{kind} in {num} part{'s' * (num > 1)}" for kind, num in sorted(loss.repairs.items())
        )
        notes.append(_note("invalid-json", "warning", f"Invalid JSON was mended: {kinds}."))
    if loss.lost_events or loss.lost_bytes:
        message = f"{loss.lost_events} events ({loss.lost_bytes:,} bytes) could not be read and are missing."
        notes.append(_note("lost-events", "warning", message, loss.lost_events, trace.tally.num_events))
    if loss.mistyped_events:
        message = (
            f"{loss.mistyped_events} events have values of the wrong type; what could be read of them was."
        )
        notes.append(
            _note("mistyped-events", "warning", message, loss.mistyped_events, trace.tally.num_events)
        )
    if loss.metadata_lost:
        notes.append(
            _note(
                "metadata-lost",
                "info",
                "The metadata around the events could not be read: device and rank may be missing.",
            )
        )
    return notes


def _time_notes(trace: Trace) -> list[HealthNote]:
    tally, total = trace.tally, trace.tally.num_events
    rows = (
        ("events-without-time", tally.without_time, "have no usable time and are left out"),
        ("negative-durations", tally.negative_duration, "have no or a negative duration and count as instants"),
        ("overflowing-durations", tally.overflowing_duration, "have an impossible duration and count as instants"),
        ("zero-duration-kernels", tally.zero_kernels, "are kernels of zero length: the clock was too coarse for them"),
        ("unpaired-events", tally.unpaired, "are begin/end events, which PyTorch does not write; they are left out"),
    )  # fmt: skip
    return [_note(code, "warning", f"{num} events {what}.", num, total) for code, num, what in rows if num]


def _link_notes(linked: LinkedTrace) -> list[HealthNote]:
    trace, notes = linked.trace, []
    total = len(trace.device)
    if not total:
        return [
            _note(
                "no-device-events",
                "warning",
                "There are no device events: no device was used, or it was not profiled.",
            )
        ]
    unlinked = int(np.count_nonzero(linked.launches.call == NONE))
    if unlinked:
        message = (
            f"{unlinked} of {total} device events have no launch in the trace; their operator may be unknown."
        )
        notes.append(_note("unlinked-kernels", "warning", message, unlinked, total))
    orphans = int(np.count_nonzero((linked.launches.operator == NONE) & (linked.launches.call != NONE)))
    if orphans:
        message = f"{orphans} of {total} device events were launched outside of recorded operators."
        notes.append(_note("kernels-without-operator", "info", message, orphans, total))
    return notes + _dropped(linked)


def _dropped(linked: LinkedTrace) -> list[HealthNote]:
    """Launches whose kernel never appears, and graph launches that show nothing of what they replay."""
    trace, notes = linked.trace, []
    calls = trace.calls
    names = trace.host.name[calls.row]
    launching = _matching(trace, re.compile(r"LaunchKernel|LaunchCooperative|ModuleLaunch"))[names]
    missing = launching & (calls.correlation > 0) & ~np.isin(calls.correlation, trace.device.correlation)
    if num := int(np.count_nonzero(missing)):
        total = int(np.count_nonzero(launching))
        message = f"{num} of {total} launches have no kernel: events were dropped, or the window ended first."
        notes.append(_note("dropped-kernels", "warning", message, num, total))
    graphs = _matching(trace, _GRAPH_LAUNCH)[names]
    if num := int(np.count_nonzero(graphs)):
        shown = int(np.count_nonzero(np.isin(trace.device.correlation, calls.correlation[graphs])))
        hidden = "none of their kernels is" if not shown else f"{shown} of their kernels are"
        severity = "info" if shown else "warning"
        notes.append(
            _note(
                "graph-replays",
                severity,
                f"{num} graph replays; {hidden} in the trace, under no operator.",
                num,
            )
        )
    return notes


def _matching(trace: Trace, pattern: "re.Pattern[str]") -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.array([pattern.search(name) is not None for name in trace.names] or [False])


def _step_notes(trace: Trace, steps: tuple[Step, ...]) -> list[HealthNote]:
    if not steps or not len(trace.device):
        return []
    device = trace.device
    empty = [s.number for s in steps if not np.any((device.start < s.end_ns) & (device.end > s.start_ns))]
    if not empty:
        return []
    message = f"{len(empty)} of {len(steps)} steps have no device events: {', '.join(map(str, empty[:8]))}."
    return [_note("empty-steps", "warning", message, len(empty), len(steps))]


def _gaps(trace: Trace) -> list[HealthNote]:
    """What was not recorded, and therefore is not in the answer."""
    notes = []
    host = trace.host
    if trace.metadata.rank is None:
        notes.append(
            _note("no-rank", "info", "The trace does not say its rank; it is taken for a single process.")
        )
    if len(host) and not np.any(host.kind == Kind.OPERATOR):
        notes.append(
            _note(
                "no-operators",
                "info",
                "No operators were recorded (CPU activity was off): device work has no cause here.",
            )
        )
    if np.any(host.kind == Kind.OPERATOR) and not np.any(trace.operators.dims >= 0):
        notes.append(
            _note(
                "no-shapes",
                "info",
                "No shapes were recorded (record_shapes=True would): no FLOP/s and no sizes.",
            )
        )
    if len(host) and not np.any(host.kind == Kind.PYTHON) and not np.any(trace.operators.stack >= 0):
        notes.append(
            _note(
                "no-stacks",
                "info",
                "No Python stacks were recorded (with_stack=True would): no lines and no modules.",
            )
        )
    return notes


def _note(
    code: str, severity: str, message: str, num: int | None = None, total: int | None = None
) -> HealthNote:
    return HealthNote(code=code, severity=severity, message=message, num=num, total=total)
