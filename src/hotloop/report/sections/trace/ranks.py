"""Several traces together: one row each, and who made the others wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.report.document import Block, Note, Table
from hotloop.report.sections.trace.cells import milliseconds, share_of, shortened, table
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.facts.timeline import DeviceTime
from hotloop.trace.ranks.ranks import Ranks


def overview(traces: Sequence[TraceAnalysis]) -> Table:
    """Many traces, one row for each of their devices."""
    return table(
        ("trace", "rank", "device", *_FIGURES), [row for analysis in traces for row in _rows(analysis)]
    )


def devices(analysis: TraceAnalysis) -> Table:
    """The devices of one trace, one row each."""
    return table(("device", *_FIGURES), [(str(one.device), *_figures(one.time)) for one in analysis.devices])


_FIGURES = ("span ms", "busy", "idle", "compute", "comm", "exposed")


def _rows(analysis: TraceAnalysis) -> Iterator[tuple[str, ...]]:
    who = (shortened(analysis.file, 26), "" if analysis.rank is None else str(analysis.rank))
    if not analysis.devices:
        yield (*who, "", "none", "", "", "", "", "")
    for one in analysis.devices:
        number = str(one.device) if len(analysis.devices) > 1 else ""
        yield (*who, number, *_figures(one.time))


def _figures(device: DeviceTime) -> tuple[str, ...]:
    shares = (
        device.busy_us,
        device.idle_us,
        device.compute_us,
        device.communication_us,
        device.exposed_communication_us,
    )
    return (milliseconds(device.span_us), *(share_of(part, device.span_us) for part in shares))


def ranks_together(ranks: Ranks, top: int) -> Iterator[Block]:
    """Who made the others wait."""
    if not ranks.num_matched:
        yield Note("The ranks share no collective that could be matched; nothing is said of stragglers.")
        return
    yield table(
        ("rank", "made others wait ms", "waited ms", "came last", "clock us"),
        [
            (
                str(one.rank),
                milliseconds(one.caused_us),
                milliseconds(one.wait_us),
                f"{one.num_last} of {one.num_matched}",
                "" if one.offset_us is None else f"{one.offset_us:+,.1f}",
            )
            for one in ranks.stragglers[:top]
        ],
    )
    yield table(
        ("longest waits", "late rank", "all wait ms", "longest ms", "transfer ms"),
        [
            (
                f"{shortened(wait.name, 26)} #{wait.index}",
                str(wait.late_rank),
                *map(milliseconds, (wait.wait_us, wait.longest_wait_us, wait.shortest_us)),
            )
            for wait in ranks.collectives[:top]
        ],
    )
    if ranks.imbalance is not None:
        yield Note(f"compute imbalance: the longest is {ranks.imbalance:.1%} above the mean")
    if ranks.num_unmatched:
        yield Note(
            f"{ranks.num_unmatched} collectives are not on all ranks of their group and were left out",
            "warning",
        )
