"""What is asked of a GPU's driver, in one vocabulary for NVIDIA and AMD."""

from collections.abc import Collection
from typing import Protocol

import msgspec


class GpuDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU that a driver library can be asked about."""

    index: int
    name: str
    memory_bytes: int | None
    uuid: str | None = None
    """Lower case, without the vendor's prefix."""
    max_clock_hz: float | None = None
    power_limit_w: float | None = None
    pcie: str | None = None
    """Link as it is now and as it could be: `gen 5 x16 of gen 5 x16`."""
    compute_mode: str | None = None
    """How many processes may use it: `default`, `exclusive process`, `prohibited`."""
    mig: bool | None = None
    """It is split into instances (MIG)."""
    num_links: int | None = None
    """Active NVLink or xGMI links."""


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one GPU; None where the driver does not tell."""

    utilization_ratio: float | None = None
    """Share of the driver's last sampling period in which a kernel ran."""
    memory_used_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    clock_hz: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """Why clocks are held below what was asked for; idling is not among them."""
    persistent: bool | None = None
    """The driver stays loaded between programs."""
    pids: tuple[int, ...] | None = None
    """Processes that hold a context on the device."""


class GpuReader(Protocol):
    """A driver library, opened."""

    def devices(self) -> list[GpuDevice]:
        """Return the devices, in the driver's order."""

    def sample(self, index: int) -> GpuSample:
        """Return one look at the device; never raises for a value that is not supported."""

    def process_shares(self, index: int) -> dict[int, float] | None:
        """Return the share of the device's compute time of each process since the last call, by pid.

        None: the driver does not tell.
        """


def num_foreign(pids: Collection[int], ours: Collection[int], visible: Collection[int]) -> int | None:
    """Return how many processes on a device are not ours, None where that cannot be told.

    Inside a container a driver may give the pids of the host: one that is not visible here may be our own.
    """
    if not set(pids) <= set(visible):
        return None
    return len(set(pids) - set(ours))
