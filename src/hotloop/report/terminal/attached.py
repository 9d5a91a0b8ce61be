"""A process that was looked at from outside, as text at 80 columns: shares, and no times of steps."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.deep import HostSamples
from hotloop.model.quantities import duration, shares
from hotloop.report.content.host_phases import host_phases, host_sentence
from hotloop.report.terminal.bars import BAR, COLORS


def attached(host: HostSamples) -> Iterator[RenderableType]:
    """Yield what the samples tell of the phases."""
    yield Text(host_sentence(host), style="bold")
    num = sum(sample.num for sample in host.samples if sample.process == "train")
    yield Text(f"{num:,} samples in {duration(host.window_s)}; the process was not stopped for them\n")
    found = host_phases(host)
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for (phase, share), said in zip(found.items(), shares(list(found.values())), strict=True):
        table.add_row(phase.value, said, Text("█" * max(1, round(share * BAR)), style=COLORS[phase]))
    yield table
