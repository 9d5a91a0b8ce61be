"""The memory plan: peaks by configuration and device, what holds the first one, and how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.model.memory_plan import Held, LargestBatch, MemoryPlan, Peak, PlannedDevice, PlannedPeak
from hotloop.model.quantities import byte_size
from hotloop.report.content.later_peak import said_later, short_place
from hotloop.report.document import Block, Facts, Note, Table

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


def memory_plan(plan: MemoryPlan) -> Iterator[Block]:
    """Yield tables for each device, what holds the peak, what more steps showed, and how it was found."""
    for device in plan.devices:
        peaks = [one for one in plan.peaks if one.device == device.name and one.reserved is not None]
        yield _table(_heading(device), "configuration", [one for one in peaks if one.formula is None])
        computed = [one for one in peaks if one.formula is not None]
        if computed:
            yield _table("", "computed", computed)
        for found in plan.largest_batches:
            if found.device == device.name:
                said = f"{found.configuration}: {_batch(found)} (now {found.of_now:,})"
                yield Note(f"largest batch that fits, {said}")
    first = plan.peaks[0] if plan.peaks else None
    if first is not None and first.held is not None:
        yield Facts((*_held(first.held), *said_later(plan)))
    notes = [("method", plan.method), ("time", _TIME)]
    notes += [("assumed", one) for one in plan.assumptions]
    notes += [("computed", f"{names}: {formula}") for formula, names in _grouped(plan, "formula")]
    notes += [("left out", f"{names}: {reason}") for reason, names in _grouped(plan, "missing")]
    yield Facts(tuple(notes))


def _grouped(plan: MemoryPlan, attribute: str) -> list[tuple[str, str]]:
    """Return what configurations say of themselves, each with the names of those that say it."""
    said: dict[str, dict[str, None]] = {}
    for peak in plan.peaks:
        text = getattr(peak, attribute)
        if text is not None and (attribute == "missing" or peak.missing is None):
            said.setdefault(text, {})[peak.configuration] = None
    return [(text, ", ".join(names)) for text, names in said.items()]


def _heading(device: PlannedDevice) -> str:
    total, outside = byte_size(device.total_bytes), byte_size(device.outside_bytes)
    return f"{device.name}: {total}, about {outside} of it outside torch's allocator"


def _table(caption: str, title: str, peaks: Sequence[PlannedPeak]) -> Table:
    rows = [
        (one.configuration, byte_size(one.allocated.num_bytes), _with_interval(one.reserved), one.fits or "")
        for one in peaks
        if one.allocated is not None and one.reserved is not None
    ]
    return Table((title, "allocated", "reserved", "fits"), tuple(rows), caption=caption, figures=(1, 2))


def _with_interval(peak: Peak) -> str:
    return f"{byte_size(peak.num_bytes)} [{byte_size(peak.low)}, {byte_size(peak.high)}]"


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
            said = ", ".join(f"{short_place(where)} {byte_size(size)}" for where, size in largest)
            rows.append((name, said))
    return rows
