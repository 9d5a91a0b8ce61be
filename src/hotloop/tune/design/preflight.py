"""What keeps two arms from sharing a device or this machine, said before it fails in the middle of a trial."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from hotloop.machine.devices.gpu import GpuDevice
from hotloop.machine.devices.nvml import open_nvml
from hotloop.model.observation import Observation

EXCLUSIVE = "exclusive process"
PROHIBITED = "prohibited"
PREFETCH = 2
"""Batches that each worker of a DataLoader keeps ready, unless told otherwise."""
ARMS = 2
_BYTES = {
    "float64": 8,
    "int64": 8,
    "float32": 4,
    "int32": 4,
    "bfloat16": 2,
    "float16": 2,
    "uint8": 1,
    "bool": 1,
}


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of the machine.

    Attributes:
        devices: those of NVIDIA's driver.
        has_mps: CUDA's multi-process service runs.
        shared_memory_bytes: of `/dev/shm`; None: there is none.
    """

    devices: tuple[GpuDevice, ...] = ()
    has_mps: bool = False
    shared_memory_bytes: int | None = None


class Hindrance(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to say.

    Attributes:
        text: what was seen, what it means, what to type.
        one_at_a_time: arms cannot be alive at once.
    """

    text: str
    one_at_a_time: bool = False


def look(environment: Mapping[str, str]) -> Surroundings:
    """Return what this machine shows."""
    with open_nvml() as nvml:
        devices = tuple(nvml.devices()) if nvml is not None else ()
    return Surroundings(
        devices=devices,
        has_mps=bool(devices) and ("CUDA_MPS_PIPE_DIRECTORY" in environment or _mps_runs()),
        shared_memory_bytes=_shared_memory(),
    )


def hindrances(observation: Observation, seen: Surroundings) -> list[Hindrance]:
    """Return what stands in the way of trials of this program here."""
    found = _shared_memory_too_small(observation, seen)
    if observation.program.device != "cuda":
        return found
    names = {use.uuid.removeprefix("GPU-").lower() for use in observation.memory.devices if use.uuid}
    used = [one for one in seen.devices if one.uuid in names] or list(seen.devices)
    return [*_compute_mode(used), *_mig(used), *_mps(seen), *found]


def _compute_mode(devices: Sequence[GpuDevice]) -> list[Hindrance]:
    for device in devices:
        if device.compute_mode == EXCLUSIVE:
            text = (
                f"GPU {device.index} is in exclusive compute mode, so only one process may use it: whole processes "
                f"take turns, which takes longer (sudo nvidia-smi -i {device.index} -c DEFAULT allows two)"
            )
            return [Hindrance(text=text, one_at_a_time=True)]
        if device.compute_mode == PROHIBITED:
            text = (
                f"GPU {device.index} is in prohibited compute mode, so no new process may use it "
                f"(sudo nvidia-smi -i {device.index} -c DEFAULT)"
            )
            return [Hindrance(text=text, one_at_a_time=True)]
    return []


def _mig(devices: Sequence[GpuDevice]) -> list[Hindrance]:
    split = [str(device.index) for device in devices if device.mig]
    if not split:
        return []
    text = (
        f"GPU {', '.join(split)} is split by MIG: its driver does not tell what other slices do, so that blocks they "
        "disturb through power and memory are not seen; keep the other slices idle"
    )
    return [Hindrance(text=text)]


def _mps(seen: Surroundings) -> list[Hindrance]:
    if not seen.has_mps:
        return []
    text = (
        "CUDA's multi-process service (MPS) is on: a process that is frozen may hold up the others it shares the "
        "server with, so copies of your program run one at a time (echo quit | nvidia-cuda-mps-control ends it)"
    )
    return [Hindrance(text=text, one_at_a_time=True)]


def _shared_memory_too_small(observation: Observation, seen: Surroundings) -> list[Hindrance]:
    """Loader workers hand batches over in shared memory; a container has 64 MiB of it unless told otherwise."""
    workers = max((loader.num_workers for loader in observation.program.loaders), default=0)
    root = next(iter(observation.program.roots), None)
    if seen.shared_memory_bytes is None or root is None or not workers:
        return []
    batch = sum(
        math.prod(shape) * _BYTES.get(dtype, 4)
        for shape, dtype in zip(root.input_shapes, root.input_dtypes, strict=True)
    )
    needed = ARMS * workers * PREFETCH * batch
    if needed <= seen.shared_memory_bytes:
        return []
    text = (
        f"/dev/shm holds {seen.shared_memory_bytes >> 20} MiB, and loader workers of two copies of your program need "
        f"about {needed >> 20} MiB: they run one at a time (docker run --shm-size=8g, or --ipc=host, makes it larger)"
    )
    return [Hindrance(text=text, one_at_a_time=True)]


def _shared_memory() -> int | None:
    place = Path("/dev/shm")
    if not place.is_dir():
        return None
    system = os.statvfs(place)
    return system.f_frsize * system.f_blocks


def _mps_runs() -> bool:
    return any(
        (process.info["name"] or "").startswith("nvidia-cuda-mps")
        for process in psutil.process_iter(["name"])
    )
