"""NVIDIA's management library, where `nvidia-ml-py` is installed and a driver answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from hotloop.machine.devices.gpu import GpuDevice, GpuSample

_T = TypeVar("_T")

_THROTTLE_REASONS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of nvmlClocksThrottleReasons (NVML reference); idle, user-set, synchronized, display left out."""

_MODES = {0: "default", 1: "exclusive process", 2: "prohibited", 3: "exclusive process"}
"""nvmlComputeMode_t; 1 is the exclusive thread of old drivers."""

_MAX_NVLINKS = 18
"""NVML_NVLINK_MAX_LINKS."""


class Nvml:
    """An initialized NVML."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self._seen_us: dict[int, int] = {}
        """The time stamp of the last look at each device's processes."""

    def devices(self) -> list[GpuDevice]:
        """Return the devices, in NVML's order (by PCI address)."""
        return [self._device(index) for index in range(self.library.nvmlDeviceGetCount())]

    def sample(self, index: int) -> GpuSample:
        """Return one look at the device."""
        nvml, handle = self.library, self.library.nvmlDeviceGetHandleByIndex(index)
        return GpuSample(
            utilization_ratio=self.ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
            memory_used_bytes=self.ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
            power_w=self.ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            temperature_c=self.ask(
                lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
            ),
            clock_hz=self.ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6),
            throttle_reasons=self.ask(
                lambda: _reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            ),
            persistent=self.ask(lambda: bool(nvml.nvmlDeviceGetPersistenceMode(handle))),
            pids=self.ask(
                lambda: tuple(int(p.pid) for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
            ),
        )

    def process_shares(self, index: int) -> dict[int, float] | None:
        """Return the share of the device's compute time of each process since the last call, by pid."""
        nvml, handle = self.library, self.library.nvmlDeviceGetHandleByIndex(index)
        since = self._seen_us.get(index, 0)
        try:
            looks = nvml.nvmlDeviceGetProcessUtilization(handle, since)
        except (nvml.NVMLError, AttributeError) as error:
            # With no process on the device there is nothing to find.
            nothing = getattr(nvml, "NVMLError_NotFound", ())
            return {} if isinstance(error, nothing) else None
        self._seen_us[index] = max((look.timeStamp for look in looks), default=since)
        shares: dict[int, list[float]] = {}
        for look in looks:
            if look.timeStamp > since:
                shares.setdefault(int(look.pid), []).append(look.smUtil / 100)
        return {pid: sum(each) / len(each) for pid, each in shares.items()}

    def _device(self, index: int) -> GpuDevice:
        nvml, handle = self.library, self.library.nvmlDeviceGetHandleByIndex(index)
        name = nvml.nvmlDeviceGetName(handle)
        return GpuDevice(
            index=index,
            name=name.decode() if isinstance(name, bytes) else str(name),
            memory_bytes=self.ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
            uuid=self.ask(lambda: _plain_uuid(nvml.nvmlDeviceGetUUID(handle))),
            max_clock_hz=self.ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6),
            power_limit_w=self.ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
            compute_mode=self.ask(lambda: _MODES.get(nvml.nvmlDeviceGetComputeMode(handle))),
            mig=self.ask(lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0])),
            pcie=self.ask(lambda: self._pcie(handle)),
            num_links=self.ask(lambda: self._num_links(handle)),
        )

    def _pcie(self, handle: Any) -> str:
        nvml = self.library
        return (
            f"gen {nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)}"
            f" x{nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)}"
            f" of gen {nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)}"
            f" x{nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)}"
        )

    def _num_links(self, handle: Any) -> int:
        states = (
            self.ask(lambda link=link: self.library.nvmlDeviceGetNvLinkState(handle, link))  # type: ignore[misc]
            for link in range(_MAX_NVLINKS)
        )
        return sum(1 for state in states if state)

    def ask(self, question: Callable[[], _T]) -> _T | None:
        """Return the answer, None where this device or this version of the library has none."""
        try:
            return question()
        except (self.library.NVMLError, AttributeError):
            return None


@contextmanager
def open_nvml() -> Iterator[Nvml | None]:
    """Give NVML for as long as the block runs, None where there is no library or no driver."""
    try:
        import pynvml
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield Nvml(pynvml)
    finally:
        pynvml.nvmlShutdown()


def _plain_uuid(uuid: str | bytes) -> str:
    text = uuid.decode() if isinstance(uuid, bytes) else uuid
    return text.removeprefix("GPU-").lower()


def _reasons(bits: int) -> tuple[str, ...]:
    return tuple(text for bit, text in _THROTTLE_REASONS.items() if bits & bit)
