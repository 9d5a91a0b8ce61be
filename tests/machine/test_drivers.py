"""Driver libraries, asked through stand-ins that have the names and units of the real ones."""

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.machine.devices.amd import AmdSmi
from hotloop.machine.devices.gpu import GpuDevice, GpuSample
from hotloop.machine.devices.nvml import Nvml


class _NvmlError(Exception):
    pass


def _unsupported(*_: Any) -> None:
    raise _NvmlError


def _nvml(**changes: Any) -> SimpleNamespace:
    """What nvidia-ml-py 13 offers, answering for one device."""
    answers: dict[str, Any] = {
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: "NVIDIA A100-SXM4-40GB",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=40 << 30, used=3 << 30),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=62),
        "nvmlDeviceGetPowerUsage": lambda handle: 251_000,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 400_000,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 71,
        "nvmlDeviceGetClockInfo": lambda handle, kind: 1410,
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: 1410,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x1 | 0x4 | 0x40,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [SimpleNamespace(pid=7)],
        "nvmlDeviceGetPersistenceMode": lambda handle: 1,
        "nvmlDeviceGetCurrPcieLinkGeneration": lambda handle: 3,
        "nvmlDeviceGetCurrPcieLinkWidth": lambda handle: 16,
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda handle: 4,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda handle: 16,
        "nvmlDeviceGetNvLinkState": lambda handle, link: 1 if link < 12 else _unsupported(),
    }
    constants = {"NVMLError": _NvmlError, "NVML_TEMPERATURE_GPU": 0, "NVML_CLOCK_SM": 1}
    return SimpleNamespace(**{**answers, **constants, **changes})


def test_nvml_values_come_in_our_units() -> None:
    nvml = Nvml(_nvml())
    assert nvml.devices() == [
        GpuDevice(
            index=0,
            name="NVIDIA A100-SXM4-40GB",
            memory_bytes=40 << 30,
            max_clock_hz=1.41e9,
            power_limit_w=400.0,
            pcie="gen 3 x16 of gen 4 x16",
            num_links=12,
        )
    ]
    assert nvml.sample(0) == GpuSample(
        utilization_ratio=0.62,
        memory_used_bytes=3 << 30,
        power_w=251.0,
        temperature_c=71.0,
        clock_hz=1.41e9,
        throttle_reasons=("software power cap", "hardware thermal slowdown"),
        persistent=True,
        pids=(7,),
    )


def test_what_nvml_does_not_support_is_none() -> None:
    library = _nvml(nvmlDeviceGetPowerUsage=_unsupported, nvmlDeviceGetUtilizationRates=_unsupported)
    del library.nvmlDeviceGetCurrentClocksThrottleReasons
    sample = Nvml(library).sample(0)
    assert (sample.power_w, sample.utilization_ratio, sample.throttle_reasons) == (None, None, None)
    assert sample.temperature_c == 71.0


def test_the_real_nvml_has_every_name_we_use() -> None:
    pynvml = pytest.importorskip("pynvml")
    missing = [name for name in vars(_nvml()) if not hasattr(pynvml, name)]
    assert missing == []


class _SmiError(Exception):
    pass


def _amdsmi(**changes: Any) -> SimpleNamespace:
    """What amdsmi 7.0 offers, answering for one MI250X."""
    kind = Enum("kind", ["GFX", "HOTSPOT", "EDGE", "CURRENT"])
    answers: dict[str, Any] = {
        "AmdSmiException": _SmiError,
        "AmdSmiClkType": kind,
        "AmdSmiTemperatureType": kind,
        "AmdSmiTemperatureMetric": kind,
        "amdsmi_get_processor_handles": lambda: ["h0"],
        "amdsmi_get_gpu_asic_info": lambda handle: {"market_name": "AMD Instinct MI250X"},
        "amdsmi_get_gpu_vram_usage": lambda handle: {"vram_total": 65536, "vram_used": 10},
        "amdsmi_get_gpu_activity": lambda handle: {"gfx_activity": 80},
        "amdsmi_get_power_info": lambda handle: {
            "current_socket_power": "N/A",
            "average_socket_power": 330,
        },
        "amdsmi_get_temp_metric": lambda handle, sensor, metric: 55,
        "amdsmi_get_clock_info": lambda handle, clock: {"clk": 1700, "max_clk": 1700},
        "amdsmi_get_violation_status": lambda handle: {"active_ppt_pwr": "N/A"},
        "amdsmi_get_gpu_process_list": lambda handle: [{"pid": 9}],
    }
    return SimpleNamespace(**{**answers, **changes})


def test_amdsmi_values_come_in_our_units() -> None:
    smi = AmdSmi(_amdsmi())
    assert smi.devices() == [
        GpuDevice(index=0, name="AMD Instinct MI250X", memory_bytes=64 << 30, max_clock_hz=1.7e9)
    ]
    assert smi.sample(0) == GpuSample(
        utilization_ratio=0.8,
        memory_used_bytes=10 << 20,
        power_w=330.0,
        temperature_c=55.0,
        clock_hz=1.7e9,
        throttle_reasons=None,
        pids=(9,),
    )


def test_what_amdsmi_does_not_know_is_none() -> None:
    def refuse(*_: Any) -> None:
        raise _SmiError

    smi = AmdSmi(_amdsmi(amdsmi_get_gpu_activity=refuse, amdsmi_get_temp_metric=refuse))
    sample = smi.sample(0)
    assert (sample.utilization_ratio, sample.temperature_c) == (None, None)


def test_a_power_cap_is_a_reason() -> None:
    status = {"active_ppt_pwr": True, "active_socket_thrm": False, "active_hbm_thrm": "N/A"}
    smi = AmdSmi(_amdsmi(amdsmi_get_violation_status=lambda handle: status))
    assert smi.sample(0).throttle_reasons == ("power cap",)


def test_nvml_tells_each_process_s_share_since_the_last_look() -> None:
    """Samples of the driver's own: a process has several, and old ones are given again."""

    def looks(_: int, since: int) -> list[SimpleNamespace]:
        told = [(100, 7, 50), (200, 7, 70), (200, 9, 30), (300, 9, 10)]
        return [SimpleNamespace(timeStamp=at, pid=pid, smUtil=used) for at, pid, used in told if at >= since]

    nvml = Nvml(_nvml(nvmlDeviceGetProcessUtilization=looks))
    assert nvml.process_shares(0) == pytest.approx({7: 0.6, 9: 0.2})
    assert nvml.process_shares(0) == {}
    assert Nvml(_nvml(nvmlDeviceGetProcessUtilization=_unsupported)).process_shares(0) is None
