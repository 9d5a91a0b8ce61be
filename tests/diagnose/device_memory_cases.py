"""Observations of devices and hosts that are full, and of ones that are not."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.model.deep import CopiedContainer, Deep, GrowingContainer, Loading
from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.observation import DeviceMemory, Memory, Observation
from tests.diagnose.observations import observed, with_loader

GIB = 1 << 30


def device(reserved: float, allocated: float, **more: Any) -> DeviceMemory:
    """Return a device of 40 GiB, of which so many are taken; half a GiB outside the allocator."""
    return DeviceMemory(
        index=0, uuid=None, name="A100", total_bytes=40 * GIB, reserved_bytes=round(reserved * GIB),
        allocated_bytes=round(allocated * GIB), beside_bytes=GIB // 2,
        inactive_split_bytes=round((reserved - allocated) * GIB / 2), **more,
    )  # fmt: skip


def on_device(*devices: DeviceMemory) -> Observation:
    """Return an observation of a program on them."""
    return observed(
        memory=Memory(peak_bytes=devices[0].allocated_bytes, device="cuda", method="", devices=devices)
    )


def with_available(seen: Observation, num_bytes: float) -> Observation:
    """Return it on a machine that had so much memory left."""
    left = Monitor(mean=num_bytes, p95=num_bytes, max=num_bytes, samples=(num_bytes,))
    monitors = Monitors(
        interval_s=0.5, begin_s=0.0, end_s=1.0, times_s=(0.5,), metrics={"memory_available_bytes": left}
    )
    return msgspec.structs.replace(seen, monitors=monitors)


def pinned(num_bytes: int, left: float) -> Observation:
    """Return an observation of a program that pins so much, on a machine of 16 GiB."""
    memory = Memory(peak_bytes=GIB, device="cuda", method="", pinned_bytes=num_bytes)
    loaded = with_loader(observed(memory=memory), num_workers=4, pin_memory=True)
    return with_available(loaded, left)


def workers(copied_bytes: float, left: float = 8.0 * GIB) -> Observation:
    """Return an observation of four workers that each copy so much of a list."""
    held = CopiedContainer(
        name="self.names", path="gone.py", function="Names", kind="list", num=3_000_000, copied_bytes=copied_bytes
    )  # fmt: skip
    loading = Loading(
        process="worker", num_processes=4, window_s=1.0, num_batches=9, num_samples=900, sample_s=1e-3, parts=(),
        used_bytes_per_sample=None, read_bytes_per_sample=None, reads_per_sample=None,
        private_bytes_per_worker=copied_bytes + 60e6, copied=held,
    )  # fmt: skip
    return with_available(with_loader(observed(deep=Deep(loading=loading)), num_workers=4), left)


def growing_workers(bytes_per_sample: float) -> Observation:
    """Return an observation of workers whose memory grows by 32 MB a second, at 320 samples a second."""
    samples = tuple(1e9 + 16e6 * at for at in range(12))
    grows = Monitor(mean=1e9, p95=1e9, max=1e9, samples=samples)
    monitors = Monitors(
        interval_s=0.5, begin_s=0.0, end_s=6.0, times_s=tuple(at / 2 for at in range(12)),
        metrics={"worker_memory_bytes": grows},
    )  # fmt: skip
    cache = GrowingContainer(
        name="self.cache", path="gone.py", function="Rows", kind="dict", per_step=1.0,
        bytes_per_step=bytes_per_sample, keeps_graph=False, has_tensors=False,
    )  # fmt: skip
    seen = workers(0.0)
    assert seen.deep is not None
    assert seen.deep.loading is not None
    loading = msgspec.structs.replace(seen.deep.loading, growing=(cache,), copied=None)
    return msgspec.structs.replace(seen, monitors=monitors, deep=Deep(loading=loading))


CASES = {
    "near-memory-limit": on_device(device(36.0, 35.0)),
    "fragmented-memory": on_device(device(37.0, 20.0)),
    "pinned-memory-starves-host": pinned(4 * GIB, left=1.0 * GIB),
    "memory-copied-per-worker": workers(200.0 * (1 << 20)),
}
"""For each code a program that has the pattern."""

SILENT = {
    "near-memory-limit": on_device(device(34.0, 33.0)),
    "fragmented-memory": on_device(device(37.0, 36.5)),
    "pinned-memory-starves-host": pinned(GIB // 8, left=1.0 * GIB),
    "memory-copied-per-worker": workers(50.0 * (1 << 20)),
}
"""For each code a program that comes near, and does not have it."""
