"""What is free on each accelerator, by its driver: a question to torch would itself take a context, and memory."""

from __future__ import annotations

import msgspec

from hotloop.machine.devices.amd import open_amd
from hotloop.machine.devices.gpu import GpuReader
from hotloop.machine.devices.nvml import open_nvml


class FreeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """One device's memory now."""

    uuid: str | None
    """Lower case, without the vendor's prefix, as torch tells it; None: the driver does not."""
    total_bytes: int
    free_bytes: int


def free_memory() -> tuple[FreeMemory, ...]:
    """Return the devices of which a driver tells; empty: none does."""
    with open_nvml() as nvml:
        if nvml is not None:
            return _rows(nvml)
    with open_amd() as amd:
        return _rows(amd) if amd is not None else ()


def _rows(reader: GpuReader) -> tuple[FreeMemory, ...]:
    rows = []
    for device in reader.devices():
        used = reader.sample(device.index).memory_used_bytes
        if device.memory_bytes is not None and used is not None:
            rows.append(
                FreeMemory(
                    uuid=device.uuid, total_bytes=device.memory_bytes, free_bytes=device.memory_bytes - used
                )
            )
    return tuple(rows)
