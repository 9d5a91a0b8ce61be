"""Several traces together: one row each, and who made the others wait."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.report.terminal.trace_cells import add_row, bullet, milliseconds, share_of, shortened, table_of
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.ranks.ranks import Ranks


def overview(traces: Sequence[TraceAnalysis]) -> Table:
    """Many traces, one row each."""
    table = table_of(
        "trace",
        *((name, "right") for name in ("rank", "span ms", "busy", "idle", "compute", "comm", "exposed")),
    )
    for analysis in traces:
        rank = "" if analysis.rank is None else str(analysis.rank)
        device = analysis.device
        if device is None:
            add_row(table, shortened(analysis.file, 26), rank, "no device events", "", "", "", "", "")
            continue
        shares = (
            device.busy_us,
            device.idle_us,
            device.compute_us,
            device.communication_us,
            device.exposed_communication_us,
        )
        add_row(
            table,
            shortened(analysis.file, 26),
            rank,
            milliseconds(device.span_us),
            *(share_of(part, device.span_us) for part in shares),
        )
    return table


def ranks_together(ranks: Ranks, top: int) -> RenderableType:
    """Who made the others wait."""
    if not ranks.num_matched:
        return bullet("The ranks share no collective that could be matched; nothing is said of stragglers.")
    table = table_of(
        "rank", *((name, "right") for name in ("made others wait ms", "waited ms", "came last", "clock us"))
    )
    for one in ranks.stragglers[:top]:
        add_row(
            table,
            str(one.rank),
            milliseconds(one.caused_us),
            milliseconds(one.wait_us),
            f"{one.num_last} of {ranks.num_matched}",
            f"{one.offset_us:+,.1f}",
        )
    waits = table_of(
        "longest waits",
        *((name, "right") for name in ("late rank", "all wait ms", "longest ms", "transfer ms")),
    )
    for wait in ranks.collectives[:top]:
        add_row(
            waits,
            f"{shortened(wait.name, 26)} #{wait.index}",
            str(wait.late_rank),
            milliseconds(wait.wait_us),
            milliseconds(wait.longest_wait_us),
            milliseconds(wait.shortest_us),
        )
    lines: list[RenderableType] = [Text(), table, Text(), waits]
    if ranks.imbalance is not None:
        lines.append(bullet(f"compute imbalance: the longest is {ranks.imbalance:.1%} above the mean"))
    if ranks.num_unmatched:
        lines.append(
            bullet(f"{ranks.num_unmatched} collectives are not on all ranks and were left out", "yellow")
        )
    return Group(*lines)
