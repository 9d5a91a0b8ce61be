"""The memory plan at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.memory_plan import Held, LargestBatch, MemoryPlan, Peak, PlannedDevice, PlannedPeak
from hotloop.model.quantities import byte_size
from hotloop.report.terminal.later_peak import said_later, short_place
from hotloop.report.terminal.layout import facts

_CLASSES = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "activations": "activations",
    "temporaries": "temporaries",
    "inputs": "inputs",
    "copies": "copies",
}
_TIME = (
    "not measured: a virtual GPU has none. `hotloop tune` on the device measures what a configuration costs"
)
_TOP = 3


def render(plan: MemoryPlan) -> RenderableType:
    """Return tables for each device, what holds the peak, what more steps showed, and how it was found."""
    parts: list[RenderableType] = []
    for device in plan.devices:
        peaks = [peak for peak in plan.peaks if peak.device == device.name]
        computed = [peak for peak in peaks if peak.formula is not None and peak.reserved is not None]
        parts += [_heading(device), _table("configuration", [each for each in peaks if each.formula is None])]
        parts += [Text(""), _table("computed", computed)] if computed else []
        parts += [*_largest(plan, device), Text("")]
    first = plan.peaks[0] if plan.peaks else None
    if first is not None and first.held is not None:
        parts += [facts([*_held(first.held), *said_later(plan)], key_width=10), Text("")]
    notes = [("method", plan.method), ("time", _TIME)]
    notes += [("assumed", each) for each in plan.assumptions]
    notes += [("computed", f"{names}: {formula}") for formula, names in _grouped(plan, "formula")]
    notes += [("left out", f"{names}: {reason}") for reason, names in _grouped(plan, "missing")]
    return Group(*parts, facts(notes, key_width=10))


def _grouped(plan: MemoryPlan, attribute: str) -> list[tuple[str, str]]:
    """Return what configurations say of themselves, each with the names of those that say it."""
    said: dict[str, dict[str, None]] = {}
    for peak in plan.peaks:
        text = getattr(peak, attribute)
        if text is not None and (attribute == "missing" or peak.missing is None):
            said.setdefault(text, {})[peak.configuration] = None
    return [(text, ", ".join(names)) for text, names in said.items()]


def _heading(device: PlannedDevice) -> Text:
    total, outside = byte_size(device.total_bytes), byte_size(device.outside_bytes)
    return Text(f"{device.name}: {total}, about {outside} of it outside torch's allocator", style="bold")


def _table(title: str, peaks: Sequence[PlannedPeak]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(title, min_width=24, max_width=32)
    table.add_column("allocated", justify="right", min_width=9)
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
            yield Text(f"largest batch that fits, {each.configuration}: {_batch(each)} (now {each.of_now:,})")


def _batch(found: LargestBatch) -> str:
    if found.batch_size is None:
        return f"none: {found.too_large:,} does not fit" if found.too_large else "none was found"
    size = f"{found.batch_size:,}, verified on the virtual GPU"
    if found.too_large is None:
        return f"at least {size}"
    return f"{size}; {found.too_large:,} does not fit"


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
            said = ", ".join(f"{shown(short_place(where))} {byte_size(size)}" for where, size in largest)
            rows.append((name, said))
    return rows
