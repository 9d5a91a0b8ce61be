"""The devices that a plan knows by name.

Memory is what the driver reports (`total_memory` of torch's device properties), which is less than the name says.
What is taken outside the allocator, context and loaded kernels, is of the order that nvidia-smi shows for a process
with one small product and one convolution; it grows with the number of kernels, and drivers differ.
"""

from __future__ import annotations

import re

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.memory_plan import PlannedDevice

MIB, GIB = 1 << 20, 1 << 30
WORKSPACE = 2 * 4096 * 1024 + 8 * 16 * 1024
"""`:4096:2:16:8`, torch's default for cuBLAS: two buffers of 4 MiB and eight of 16 KiB (CublasHandlePool.cpp)."""
HOPPER_WORKSPACE = 32 * MIB
"""From compute capability 9.0 on (the same function)."""


def _nvidia(
    name: str, total_mib: int, capability: tuple[int, int], processors: int, outside_mib: int
) -> PlannedDevice:
    return PlannedDevice(
        name=name,
        total_bytes=total_mib * MIB,
        outside_bytes=outside_mib * MIB,
        capability=capability,
        num_processors=processors,
        workspace_bytes=HOPPER_WORKSPACE if capability >= (9, 0) else WORKSPACE,
    )


def _amd(name: str, total_mib: int, processors: int) -> PlannedDevice:
    return PlannedDevice(
        name=name,
        total_bytes=total_mib * MIB,
        outside_bytes=600 * MIB,
        capability=(9, 0),
        num_processors=processors,
    )


DEVICES = (
    _nvidia("V100 16GB", 16151, (7, 0), 80, 320),
    _nvidia("V100 32GB", 32501, (7, 0), 80, 320),
    _nvidia("T4", 14931, (7, 5), 40, 280),
    _nvidia("L4", 22563, (8, 9), 58, 360),
    _nvidia("A10", 22588, (8, 6), 72, 380),
    _nvidia("A100 40GB", 40326, (8, 0), 108, 430),
    _nvidia("A100 80GB", 81051, (8, 0), 108, 430),
    _nvidia("H100 80GB", 81079, (9, 0), 132, 530),
    _nvidia("H200", 143167, (9, 0), 132, 530),
    _nvidia("B200", 182642, (10, 0), 148, 650),
    _amd("MI250X", 65520, 104),
    _amd("MI300X", 196592, 304),
    _nvidia("RTX 3090", 24118, (8, 6), 82, 380),
    _nvidia("RTX 4090", 24077, (8, 9), 128, 400),
    _nvidia("RTX 5090", 32120, (12, 0), 170, 600),
)
_DECORATION = re.compile(r"nvidia|geforce|amd|instinct|tesla|sxm\d?|pcie|[\s_-]|gib|gb")


def device_named(text: str) -> PlannedDevice:
    """Return the device that a text names: `A100 40GB`, `rtx4090`, or a size of memory alone, `24GB`.

    Raises:
        HotloopError: there is none, or several: the hint lists them.
    """
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(gib|gb)", text.strip().lower())
    if size is not None:
        unit = 10**9 if size[2] == "gb" else GIB
        return PlannedDevice(
            name=text.strip(),
            total_bytes=int(float(size[1]) * unit),
            outside_bytes=430 * MIB,
            capability=(8, 0),
            num_processors=108,
            workspace_bytes=WORKSPACE,
        )
    wanted = _bare(text)
    found = [device for device in DEVICES if wanted and _bare(device.name).startswith(wanted)]
    exact = [device for device in found if _bare(device.name) == wanted]
    if len(exact or found) == 1:
        return (exact or found)[0]
    known = ", ".join(device.name for device in found or DEVICES)
    what = f"{text!r} names several devices" if found else f"there is no device {text!r} in the list"
    raise HotloopError(what, f"write one of {known}; or a size, such as 24GB", ExitCode.USAGE)


def _bare(text: str) -> str:
    return _DECORATION.sub("", text.lower())
