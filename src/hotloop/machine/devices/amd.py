"""AMD's system management interface, where the `amdsmi` of the ROCm installation answers.

Written against amdsmi 7.0; values it does not know are the string "N/A" there and None here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotloop.machine.devices.gpu import GpuDevice, GpuSample

_MEGABYTE = 1 << 20
"""amdsmi gives memory in these."""

_THROTTLE_REASONS = {
    "active_prochot_thrm": "hardware thermal slowdown",
    "active_ppt_pwr": "power cap",
    "active_socket_thrm": "socket thermal slowdown",
    "active_vr_thrm": "voltage regulator thermal slowdown",
    "active_hbm_thrm": "memory thermal slowdown",
}


class AmdSmi:
    """An initialized amdsmi."""

    def __init__(self, library: Any) -> None:
        self._smi = library
        self._handles = list(library.amdsmi_get_processor_handles())

    def devices(self) -> list[GpuDevice]:
        """Return the devices, in amdsmi's order."""
        return [self._device(index) for index in range(len(self._handles))]

    def sample(self, index: int) -> GpuSample:
        """Return one look at the device."""
        smi, handle = self._smi, self._handles[index]
        activity = self._ask(lambda: smi.amdsmi_get_gpu_activity(handle)["gfx_activity"])
        used = self._ask(lambda: smi.amdsmi_get_gpu_vram_usage(handle)["vram_used"])
        clock = self._ask(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX)["clk"])
        return GpuSample(
            utilization_ratio=None if activity is None else activity / 100,
            memory_used_bytes=None if used is None else int(used) * _MEGABYTE,
            power_w=self._power_w(handle),
            temperature_c=self._temperature_c(handle),
            clock_hz=None if clock is None else clock * 1e6,
            throttle_reasons=self._throttle_reasons(handle),
            pids=self._pids(handle),
        )

    def process_shares(self, index: int) -> dict[int, float] | None:  # noqa: ARG002 - amdsmi 7.0 has no such count
        """Return None: the driver does not tell."""
        return None

    def _device(self, index: int) -> GpuDevice:
        smi, handle = self._smi, self._handles[index]
        total = self._ask(lambda: smi.amdsmi_get_gpu_vram_usage(handle)["vram_total"])
        name = self._ask(lambda: smi.amdsmi_get_gpu_asic_info(handle)["market_name"], numeric=False)
        clock = self._ask(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX)["max_clk"])
        return GpuDevice(
            index=index,
            name=name or "AMD GPU",
            memory_bytes=None if total is None else int(total) * _MEGABYTE,
            max_clock_hz=None if clock is None else clock * 1e6,
        )

    def _power_w(self, handle: Any) -> float | None:
        """MI300 gives the current power, MI200 an average."""
        for key in ("current_socket_power", "average_socket_power"):
            power = self._ask(lambda key=key: self._smi.amdsmi_get_power_info(handle)[key])  # type: ignore[misc]
            if power:
                return float(power)
        return None

    def _temperature_c(self, handle: Any) -> float | None:
        smi = self._smi
        for sensor in ("HOTSPOT", "EDGE"):
            found = self._ask(
                lambda sensor=sensor: smi.amdsmi_get_temp_metric(  # type: ignore[misc]
                    handle, smi.AmdSmiTemperatureType[sensor], smi.AmdSmiTemperatureMetric.CURRENT
                )
            )
            if found is not None:
                return float(found)
        return None

    def _throttle_reasons(self, handle: Any) -> tuple[str, ...] | None:
        """Only MI300 and later tell."""
        status = self._ask(lambda: self._smi.amdsmi_get_violation_status(handle), numeric=False)
        if status is None or not any(isinstance(status.get(key), bool) for key in _THROTTLE_REASONS):
            return None
        return tuple(text for key, text in _THROTTLE_REASONS.items() if status.get(key) is True)

    def _pids(self, handle: Any) -> tuple[int, ...] | None:
        processes = self._ask(lambda: self._smi.amdsmi_get_gpu_process_list(handle), numeric=False)
        return None if processes is None else tuple(int(process["pid"]) for process in processes)

    def _ask(self, question: Callable[[], Any], numeric: bool = True) -> Any:
        """Return the answer, None where this device or this version of the library has none."""
        try:
            answer = question()
        except (self._smi.AmdSmiException, AttributeError, KeyError):
            return None
        if answer == "N/A" or (numeric and not isinstance(answer, int | float)):
            return None
        return answer


@contextmanager
def open_amd() -> Iterator[AmdSmi | None]:
    """Give amdsmi for as long as the block runs, None where there is no library or no driver.

    The driver's device file is looked for first: without the driver some versions print and exit on import.
    """
    if not Path("/dev/kfd").exists():
        yield None
        return
    try:
        import amdsmi
    except (ImportError, OSError, KeyError):
        yield None
        return
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException:
        yield None
        return
    try:
        yield AmdSmi(amdsmi)
    finally:
        amdsmi.amdsmi_shut_down()
