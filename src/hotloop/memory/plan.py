"""From virtual runs to the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotloop.memory.configurations import AS_IT_IS, TWICE, PlannedConfiguration, configurations
from hotloop.memory.virtual_run import VirtualPeak, VirtualReport
from hotloop.model.memory_plan import LargestBatch, MemoryPlan, Peak, PlannedDevice, PlannedPeak

ERROR = 0.03
"""Relative error of the estimator: benchmarks/results/memory-*.md; the worst of the programs that are exact."""
ASSUMED_ERROR = 0.10
"""Where values that decide over shapes were assumed."""
BF16_FROM = (8, 0)
FLASH_FROM = (8, 0)
METHOD = (
    "your program, unmodified, on a virtual GPU: two steps of each configuration with tensors that have shapes and no "
    "memory; its allocations replayed through a model of torch's caching allocator"
)

Runner = Callable[[PlannedDevice, Sequence[PlannedConfiguration]], VirtualReport]


def plan_for(command: Sequence[str], devices: Sequence[PlannedDevice], run: Runner) -> MemoryPlan:
    """Return the plan for some devices.

    Args:
        command: as typed.
        devices: those with the same kernels and workspace share a run.
        run: runs the program on a virtual device.
    """
    reports: dict[tuple[bool, int], VirtualReport] = {}
    for device in devices:
        kind = _kind(device)
        if kind not in reports:
            half = "bfloat16" if device.capability >= BF16_FROM else "float16"
            reports[kind] = run(device, configurations(half))
    peaks = [
        _planned(device, peak, reports[_kind(device)])
        for device in devices
        for peak in reports[_kind(device)].configurations
    ]
    largest = [found for device in devices if (found := _largest(device, reports[_kind(device)]))]
    return MemoryPlan(
        command=tuple(command),
        devices=tuple(devices),
        peaks=tuple(peaks),
        largest_batches=tuple(largest),
        assumptions=tuple(sorted({each for report in reports.values() for each in report.assumptions})),
        method=METHOD,
    )


def _kind(device: PlannedDevice) -> tuple[bool, int]:
    return device.capability >= FLASH_FROM, device.workspace_bytes


def _planned(device: PlannedDevice, peak: VirtualPeak, report: VirtualReport) -> PlannedPeak:
    if peak.peak_allocated_bytes is None or peak.peak_reserved_bytes is None:
        return PlannedPeak(configuration=peak.name, device=device.name, missing=peak.missing)
    error = ASSUMED_ERROR if report.assumptions else ERROR
    reserved = _interval(peak.peak_reserved_bytes, error)
    return PlannedPeak(
        configuration=peak.name,
        device=device.name,
        allocated=_interval(peak.peak_allocated_bytes, error),
        reserved=reserved,
        fits=_fits(reserved, device),
        held=peak.held,
    )


def _interval(num_bytes: int, error: float) -> Peak:
    return Peak(num_bytes=num_bytes, low=round(num_bytes * (1 - error)), high=round(num_bytes * (1 + error)))


def _fits(reserved: Peak, device: PlannedDevice) -> str:
    room = device.total_bytes - device.outside_bytes
    if reserved.high <= room:
        return "yes"
    return "no" if reserved.low > room else "unsure"


def _largest(device: PlannedDevice, report: VirtualReport) -> LargestBatch | None:
    """Return the largest batch, from the peaks of two: what a peak holds grows with the batch by a straight line."""
    by_name = {peak.name: peak.peak_reserved_bytes for peak in report.configurations}
    one, two = by_name.get(AS_IT_IS), by_name.get(TWICE)
    if one is None or two is None or report.batch_size is None or two <= one:
        return None
    error = ASSUMED_ERROR if report.assumptions else ERROR
    room = (device.total_bytes - device.outside_bytes) / (1 + error)
    per_sample = (two - one) / report.batch_size
    size = int((room - (one - report.batch_size * per_sample)) // per_sample)
    return LargestBatch(
        configuration=AS_IT_IS,
        device=device.name,
        batch_size=size if size >= 1 else None,
        of_now=report.batch_size,
    )
