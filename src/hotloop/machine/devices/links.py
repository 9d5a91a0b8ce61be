"""How GPUs are connected to each other and to the host, as NVML tells it."""

from collections.abc import Sequence
from itertools import combinations

import msgspec

from hotloop.machine.devices.nvml import Nvml

NVLINK = 0
"""Closer than any way over the PCIe bus (`nvmlGpuTopologyLevel_t`: 10 a single switch, 50 across sockets)."""
UNKNOWN = 50
"""What is not told is taken for the longest way."""


class Wired(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, and its way to the host.

    Attributes:
        index: in NVML's order, which is that of `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
        uuid: without the vendor's prefix.
        memory_bytes: that it has.
        name: the model.
        lanes: of its PCIe link, generation times width; None: the driver does not tell.
        num_foreign: processes on it; None: likewise.
    """

    index: int
    uuid: str | None
    name: str
    memory_bytes: int | None
    lanes: int | None
    num_foreign: int | None


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a machine, and the ways between each two of them."""

    devices: tuple[Wired, ...]
    distances: dict[tuple[int, int], int]
    """Of two indices, the lower one first."""

    def spread(self, indices: Sequence[int]) -> int:
        """Return the longest way between any two of these devices; 0: there is one alone, or all are linked."""
        return max(
            (self.distances.get(pair, UNKNOWN) for pair in combinations(sorted(indices), 2)), default=0
        )


def wiring(nvml: Nvml) -> Wiring:
    """Return what the driver tells."""
    library, devices = nvml.library, nvml.devices()
    handles = [library.nvmlDeviceGetHandleByIndex(device.index) for device in devices]
    distances: dict[tuple[int, int], int] = {}
    for one, other in combinations(range(len(devices)), 2):
        linked = nvml.ask(
            lambda one=one, other=other: library.nvmlDeviceGetP2PStatus(  # type: ignore[misc]
                handles[one], handles[other], library.NVML_P2P_CAPS_INDEX_NVLINK
            )
        )
        way = nvml.ask(
            lambda one=one, other=other: int(  # type: ignore[misc]
                library.nvmlDeviceGetTopologyCommonAncestor(handles[one], handles[other])
            )
        )
        # NVML_P2P_STATUS_OK is 0.
        distances[one, other] = NVLINK if linked == 0 else UNKNOWN if way is None else way
    return Wiring(
        devices=tuple(
            Wired(
                index=device.index,
                uuid=device.uuid,
                name=device.name,
                memory_bytes=device.memory_bytes,
                lanes=nvml.ask(lambda handle=handle: _lanes(library, handle)),  # type: ignore[misc]
                num_foreign=nvml.ask(
                    lambda handle=handle: len(library.nvmlDeviceGetComputeRunningProcesses(handle))  # type: ignore[misc]
                ),
            )
            for device, handle in zip(devices, handles, strict=True)
        ),
        distances=distances,
    )


def pci_address(nvml: Nvml, uuid: str) -> str | None:
    """Return a device's address on the bus as the kernel writes it; None: there is no such device."""
    library = nvml.library
    wanted = uuid.removeprefix("GPU-").lower()
    index = next((device.index for device in nvml.devices() if device.uuid == wanted), None)
    if index is None:
        return None
    address = nvml.ask(lambda: library.nvmlDeviceGetPciInfo(library.nvmlDeviceGetHandleByIndex(index)).busId)
    text = address.decode() if isinstance(address, bytes) else str(address or "")
    domain, _, rest = text.partition(":")  # NVML gives the domain eight digits, the kernel four
    return f"{domain[-4:]}:{rest}"


def _lanes(library: object, handle: object) -> int:
    nvml: object = library
    generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)  # type: ignore[attr-defined]
    return int(generation) * int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))  # type: ignore[attr-defined]
