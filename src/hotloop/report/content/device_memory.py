"""What is beside the tensors: the allocator's slack, what lies outside the allocator, pinned buffers on the host."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.observation import DeviceMemory, Memory
from hotloop.model.quantities import byte_size, counted


def device_memory(memory: Memory) -> Iterator[str]:
    """Yield a line for each device, and one for pinned buffers."""
    for device in memory.devices:
        yield _told(device)
    if memory.pinned_bytes:
        yield f"{byte_size(memory.pinned_bytes)} of pinned buffers on the host"


def _told(device: DeviceMemory) -> str:
    retries = f"; {counted(device.num_retries, 'allocation')} retried" if device.num_retries else ""
    return (
        f"device {device.index}: {byte_size(device.reserved_bytes)} reserved by torch's allocator{_inside(device)}, "
        f"{byte_size(device.beside_bytes)} outside it (context, libraries, other programs), of "
        f"{byte_size(device.total_bytes)}{retries}"
    )


def _inside(device: DeviceMemory) -> str:
    if device.allocated_bytes is None or device.slack_bytes is None:
        return ""
    split = device.inactive_split_bytes
    rests = f", at most {byte_size(split)} in rests of split blocks" if split else ""
    return f" ({byte_size(device.allocated_bytes)} of tensors, {byte_size(device.slack_bytes)} slack{rests})"
