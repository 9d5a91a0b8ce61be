"""The memory plan at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.memory_plan import Held, MemoryPlan, Peak, PlannedDevice, PlannedPeak
from hotloop.model.quantities import byte_size
from hotloop.report.terminal.layout import facts

_CLASSES = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "activations": "activations",
    "temporaries": "temporaries",
    "inputs": "inputs",
}
_TOP = 3


def render(plan: MemoryPlan) -> RenderableType:
    """Return a table for each device, what holds the peak, and how it was found."""
    parts: list[RenderableType] = []
    for device in plan.devices:
        peaks = [peak for peak in plan.peaks if peak.device == device.name]
        parts += [_heading(device), _table(peaks), *_largest(plan, device), Text("")]
    first = plan.peaks[0] if plan.peaks else None
    if first is not None and first.held is not None:
        parts += [facts(_held(first.held), key_width=10), Text("")]
    notes = [("method", plan.method)]
    notes += [("assumed", each) for each in plan.assumptions]
    missing = {peak.configuration: peak.missing for peak in plan.peaks if peak.missing}
    reasons: dict[str, list[str]] = {}
    for name, reason in missing.items():
        reasons.setdefault(reason, []).append(name)
    notes += [("left out", f"{', '.join(names)}: {reason}") for reason, names in reasons.items()]
    return Group(*parts, facts(notes, key_width=10))


def _heading(device: PlannedDevice) -> Text:
    total, outside = byte_size(device.total_bytes), byte_size(device.outside_bytes)
    return Text(f"{device.name}: {total}, about {outside} of it outside torch's allocator", style="bold")


def _table(peaks: Sequence[PlannedPeak]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("configuration", max_width=32)
    table.add_column("allocated", justify="right")
    table.add_column("reserved", justify="right")
    table.add_column("fits")
    for peak in peaks:
        if peak.allocated is not None and peak.reserved is not None:
            style = {"yes": "green", "no": "red"}.get(peak.fits or "", "yellow")
            table.add_row(
                peak.configuration,
                byte_size(peak.allocated.num_bytes),
                _with_interval(peak.reserved),
                Text(peak.fits or "", style=style),
            )
    return table


def _with_interval(peak: Peak) -> str:
    return f"{byte_size(peak.num_bytes)} [{byte_size(peak.low)}, {byte_size(peak.high)}]"


def _largest(plan: MemoryPlan, device: PlannedDevice) -> Iterator[Text]:
    for each in plan.largest_batches:
        if each.device == device.name:
            size = f"{each.batch_size:,}" if each.batch_size is not None else "not even one sample fits"
            yield Text(f"largest batch that fits, {each.configuration}: {size} (now {each.of_now:,})")


def _held(held: Held) -> list[tuple[str, str]]:
    total = sum(held.by_class.values()) or 1
    ordered = sorted(held.by_class.items(), key=lambda pair: -pair[1])
    classes = ", ".join(
        f"{_CLASSES[name]} {byte_size(size)}" for name, size in ordered if size >= total / 1000
    )
    rows = [("at peak", classes)]
    for name, sizes in (("lines", held.by_line), ("modules", held.by_module)):
        largest = [(where, size) for where, size in sizes.items() if where][:_TOP]
        if largest:
            said = ", ".join(f"{shown(_short(where))} {byte_size(size)}" for where, size in largest)
            rows.append((name, said))
    return rows


def _short(where: str) -> str:
    path, colon, line = where.rpartition(":")
    return f"{Path(path).name}:{line}" if colon and line.isdigit() else where
