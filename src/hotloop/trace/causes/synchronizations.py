"""Where the host waited for the device: each call, the operator that hides it, the Python line behind it."""

import re

import msgspec
import numpy as np

from hotloop.trace.facts.intervals import Intervals
from hotloop.trace.link.call_names import CallClass, classify_call
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.link.python_lines import PythonSite, site_above, site_in_stack
from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import Array
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import Trace

_COPY = re.compile(r"^hipMemcpyWithStream|^(?:cuda|hip)Memcpy")


class SyncSite(msgspec.Struct, frozen=True, kw_only=True):
    """All waits of one kind at one place."""

    call: str
    under: tuple[str, ...]
    """Enclosing operators, outermost first; empty: the call was made outside of operators."""
    implicit: bool
    """An operator made the call; nobody wrote it."""
    num: int
    total_us: float
    longest_us: float
    idle_us: float
    """What the device stood still for them; of all sites together `idle_causes.synchronization_us`."""
    path: str | None = None
    line: int | None = None
    function: str | None = None


def call_classes(trace: Trace) -> Array:
    """Per name index: the class of the call of that name."""
    calls = np.unique(trace.host.name[trace.host.kind == Kind.CALL])
    classes = np.zeros(max(len(trace.names), 1), dtype=np.int8)
    for index in calls.tolist():
        classes[index] = classify_call(trace.names[index])
    return classes


def sync_rows(trace: Trace) -> Array:
    """Host rows of calls that wait for the device."""
    calls = np.flatnonzero(trace.host.kind == Kind.CALL)
    waits: Array = calls[call_classes(trace)[trace.host.name[calls]] == CallClass.SYNC]
    return waits


def find_syncs(linked: LinkedTrace, idle: Intervals) -> tuple[SyncSite, ...]:
    """Waits by call, operators and line, the longest first.

    Args:
        linked: the trace.
        idle: when the device stood still because of a wait.
    """
    host = linked.trace.host
    rows = sync_rows(linked.trace)
    idle_ns = _by_wait(host.start[rows], idle)
    groups: dict[tuple[str, tuple[str, ...], PythonSite | None], list[tuple[int, int]]] = {}
    for row, idle_of_row in zip(rows.tolist(), idle_ns.tolist(), strict=True):
        under = operators_above(linked, row)
        site = site_above(linked, row) or site_in_stack(linked, row)
        cost = int(host.end[row] - host.start[row]), idle_of_row
        groups.setdefault((linked.name(row), under, site), []).append(cost)
    sites = [
        SyncSite(
            call=call,
            under=under,
            implicit=bool(under),
            num=len(costs),
            total_us=sum(waited for waited, _ in costs) / 1000,
            longest_us=max(waited for waited, _ in costs) / 1000,
            idle_us=sum(stood for _, stood in costs) / 1000,
            path=site.path if site else None,
            line=site.line if site else None,
            function=site.function if site else None,
        )
        for (call, under, site), costs in groups.items()
    ]
    return tuple(sorted(sites, key=lambda site: -site.total_us))


def _by_wait(start: Int64, idle: Intervals) -> Int64:
    """Idle nanoseconds of each wait: of those that had begun, the last."""
    order = np.argsort(start, kind="stable")
    wait = np.maximum(np.searchsorted(start[order], idle.start, side="right") - 1, 0)
    idle_ns = np.zeros(len(start), dtype=np.int64)
    np.add.at(idle_ns, order[wait], idle.end - idle.start)
    return idle_ns


def operators_above(linked: LinkedTrace, row: int) -> tuple[str, ...]:
    """The operators that enclose a call, outermost first."""
    kinds = linked.trace.host.kind
    return tuple(
        linked.name(above)
        for above in reversed(linked.nesting.chain(row)[1:])
        if kinds[above] == Kind.OPERATOR and not linked.name(above).startswith("ProfilerStep#")
    )
