"""From virtual runs to the plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from hotloop.memory.computed import ComputedConfiguration, computed_configurations
from hotloop.memory.configurations import AS_IT_IS, SHORT, configurations
from hotloop.memory.virtual_report import Look, VirtualPeak, VirtualReport, Wanted
from hotloop.model.memory_plan import LargestBatch, LaterPeak, MemoryPlan, Peak, PlannedDevice, PlannedPeak

ERROR = 0.08
"""Relative error of the estimator: 24 of 28 programs in benchmarks/results/memory-plan-*.md are within it."""
ASSUMED_ERROR = 0.15
"""Where values that decide over shapes were assumed."""
BF16_FROM = (8, 0)
FLASH_FROM = (8, 0)
METHOD = (
    "your program, unmodified, on a virtual GPU: two steps of each configuration with tensors that have shapes and no "
    "memory; its allocations replayed through a model of torch's caching allocator"
)

LOOK_S = 15.0
"""Seconds that the program as it is runs on after its first step."""

Runner = Callable[[PlannedDevice, Wanted], VirtualReport]


def plan_for(command: Sequence[str], devices: Sequence[PlannedDevice], run: Runner) -> MemoryPlan:
    """Return the plan for some devices.

    Args:
        command: as typed.
        devices: those with the same kernels and workspace share a run.
        run: runs the program on a virtual device.
    """
    kinds: dict[tuple[bool, int], list[PlannedDevice]] = {}
    for device in devices:
        kinds.setdefault(_kind(device), []).append(device)
    reports: dict[tuple[bool, int], VirtualReport] = {}
    for kind, alike in kinds.items():
        reports[kind] = run(alike[0], _wanted(alike, look_s=None if reports else LOOK_S))
    first = reports[_kind(devices[0])]
    formulas = {each.name: each.formula for half in SHORT.values() for each in _computed(half)}
    peaks = [
        _planned(
            device,
            _with_later(peak, look),
            reports[_kind(device)],
            formulas.get(peak.name),
            may_be_more=look is not None and _may_be_more(peak, reports[_kind(device)], look, device),
        )
        for device in devices
        for look in [look_on(first, reports[_kind(device)])]
        for peak in reports[_kind(device)].configurations
    ]
    largest = [found for device in devices if (found := _largest(device, reports[_kind(device)]))]
    return MemoryPlan(
        command=tuple(command),
        devices=tuple(devices),
        peaks=tuple(peaks),
        largest_batches=tuple(largest),
        later=_later(first),
        assumptions=tuple(sorted({each for report in reports.values() for each in report.assumptions})),
        method=METHOD,
    )


def _wanted(devices: Sequence[PlannedDevice], *, look_s: float | None) -> Wanted:
    half = "bfloat16" if devices[0].capability >= BF16_FROM else "float16"
    return Wanted(
        configurations=tuple(configurations(half)),
        computed=tuple(_computed(SHORT[half])),
        rooms=tuple(sorted({_room(device) for device in devices})),
        errors=(ERROR, ASSUMED_ERROR),
        look_s=look_s,
    )


def _computed(short: str) -> list[ComputedConfiguration]:
    return computed_configurations(f"{short} + checkpointing")


def _kind(device: PlannedDevice) -> tuple[bool, int]:
    return device.capability >= FLASH_FROM, device.workspace_bytes


def _room(device: PlannedDevice) -> int:
    return device.total_bytes - device.outside_bytes


def look_on(first: VirtualReport, report: VirtualReport) -> Look | None:
    """Return the look of the first kind of device as it would be on another: its steps differ by a factor."""
    look, steps, others = first.look, first.configurations[0], report.configurations[0]
    if look is None or report is first or not steps.peak_allocated_bytes or not others.peak_allocated_bytes:
        return look
    factor = others.peak_allocated_bytes / steps.peak_allocated_bytes
    return msgspec.structs.replace(
        look,
        peak_allocated_bytes=round(look.peak_allocated_bytes * factor),
        peak_reserved_bytes=round(look.peak_reserved_bytes * factor),
    )


def _with_later(peak: VirtualPeak, look: Look | None) -> VirtualPeak:
    """Return the peak of the program as it is over all steps that were seen."""
    if peak.name != AS_IT_IS or look is None or peak.peak_allocated_bytes is None:
        return peak
    if look.peak_allocated_bytes <= peak.peak_allocated_bytes:
        return peak
    return msgspec.structs.replace(
        peak,
        peak_allocated_bytes=look.peak_allocated_bytes,
        peak_reserved_bytes=look.peak_reserved_bytes,
        held=look.held,
    )


def _may_be_more(peak: VirtualPeak, report: VirtualReport, look: Look, device: PlannedDevice) -> bool:
    """Whether more is needed than the steps of a configuration showed.

    What grows is more in the end. Where a later step of the program as it is needed more than its first ones, by more
    than the estimator's own error, so may one of any configuration; an evaluation is the same in all of them.
    """
    if (look.grows_bytes or 0) * look.num_steps > ERROR * look.peak_allocated_bytes:
        return True
    if peak.name == AS_IT_IS:  # its peak is the one that was looked for
        return False
    if look.phase == "between":
        return look.peak_reserved_bytes * (1 + ERROR) > _room(device)
    return look.peak_allocated_bytes > (1 + ERROR) * (
        report.configurations[0].peak_allocated_bytes or math.inf
    )


def _later(report: VirtualReport) -> LaterPeak | None:
    look = report.look
    if look is None:
        return None
    return LaterPeak(
        num_steps=look.num_steps,
        allocated_bytes=look.peak_allocated_bytes,
        step=look.step,
        phase=look.phase,
        line=look.line,
        grows_bytes=look.grows_bytes,
        growing_line=look.growing_line,
        sizes=look.sizes,
        whole_epoch=look.num_epochs > 0,
        failure=report.later_failure,
    )


def _planned(
    device: PlannedDevice,
    peak: VirtualPeak,
    report: VirtualReport,
    formula: str | None,
    *,
    may_be_more: bool,
) -> PlannedPeak:
    if peak.peak_allocated_bytes is None or peak.peak_reserved_bytes is None:
        return PlannedPeak(configuration=peak.name, device=device.name, missing=peak.missing)
    error = ASSUMED_ERROR if report.assumptions else ERROR
    reserved = _interval(peak.peak_reserved_bytes, error)
    fits = _fits(reserved, device)
    return PlannedPeak(
        configuration=peak.name,
        device=device.name,
        allocated=_interval(peak.peak_allocated_bytes, error),
        reserved=reserved,
        fits="unsure" if fits == "yes" and may_be_more else fits,
        held=peak.held,
        formula=formula,
    )


def _interval(num_bytes: int, error: float) -> Peak:
    return Peak(num_bytes=num_bytes, low=round(num_bytes * (1 - error)), high=round(num_bytes * (1 + error)))


def _fits(reserved: Peak, device: PlannedDevice) -> str:
    room = _room(device)
    if reserved.high <= room:
        return "yes"
    return "no" if reserved.low > room else "unsure"


def _largest(device: PlannedDevice, report: VirtualReport) -> LargestBatch | None:
    """Return the largest batch, by steps at it; None: the batch cannot be changed, or there was no time to look."""
    found = next((each for each in report.largest if each.room == _room(device)), None)
    if found is None or report.batch_size is None:
        return None
    return LargestBatch(
        configuration=AS_IT_IS,
        device=device.name,
        batch_size=found.fits or None,
        of_now=report.batch_size,
        too_large=found.too_large,
    )
