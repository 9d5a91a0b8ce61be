"""The environment check: what would spoil a measurement, judged on what was seen."""

from pathlib import Path

import msgspec
import pytest

from hotloop.machine.devices.gpu import GpuSample
from hotloop.machine.environment.check import CHECKS, check_environment
from hotloop.machine.environment.snapshot import MachineSnapshot, look
from hotloop.machine.report import is_quiet
from hotloop.model.machine import CheckStatus, Cores, EnvironmentCheck

_CORES = Cores(num_logical=4, num_usable=4, num_physical=4, governor="performance", hypervisor=False)


def _quiet() -> MachineSnapshot:
    """A machine on which everything is as it should be."""
    return MachineSnapshot(
        cores=_CORES,
        wall_s=1.0,
        folder="/data",
        disk_bytes=1 << 40,
        disk_free_bytes=1 << 39,
        swap_used_bytes=0,
        swap_bytes_per_s=0.0,
        clock_drift_ratio=2e-6,
        clock_source="tsc",
        foreign_ratio=0.01,
        steal_ratio=0.0,
        throttled_s=0.0,
        thermal_events=0,
        temperature_c=50.0,
        temperature_limit_c=90.0,
        hash_seed="0",
        num_gpus=1,
        gpus={0: GpuSample(throttle_reasons=(), persistent=True)},
        foreign_gpu_processes={0: 0},
    )


def _found(**changes: object) -> dict[str, EnvironmentCheck]:
    seen = msgspec.structs.replace(_quiet(), **changes)
    return {check.name: check for check in check_environment(seen)}


def test_a_quiet_machine_passes_every_check() -> None:
    checks = check_environment(_quiet())
    assert len(checks) == len(CHECKS)
    assert [check.name for check in checks if check.status is not CheckStatus.OK] == []
    assert {check.fix for check in checks} == {""}
    assert is_quiet(checks)


def _cores(**changes: object) -> Cores:
    return msgspec.structs.replace(_CORES, **changes)


@pytest.mark.parametrize(
    ("name", "changes", "seen"),
    [
        ("frequency-governor", {"cores": _cores(governor="powersave")}, "powersave"),
        (
            "background-load",
            {"foreign_ratio": 0.25, "busiest": (("ffmpeg", 7, 0.24),)},
            "25% of the usable cores: ffmpeg (pid 7) 24%, others 1%",
        ),
        ("steal", {"steal_ratio": 0.2}, "20.0% of the usable cores"),
        (
            "usable-cores",
            {"cores": _cores(quota_cores=1.5, num_usable=1), "throttled_s": 0.4},
            "1.5 of 4 cores by cgroup quota, held back 0.40 s within 1.0 s",
        ),
        ("cpu-heat", {"temperature_c": 95.0}, "95 C"),
        ("cpu-heat", {"thermal_events": 3}, "50 C slowed down 3 times within 1.0 s"),
        (
            "swap",
            {"swap_used_bytes": 2 * 10**9, "swap_bytes_per_s": 5e6},
            "1.86 GiB in use, 4.77 MiB/s moving",
        ),
        ("disk-space", {"disk_free_bytes": 10**9}, "954 MiB free of 1,024 GiB at /data"),
        ("thread-variables", {"variables": {"OMP_NUM_THREADS": "8"}}, "OMP_NUM_THREADS=8"),
        ("clock", {"clock_drift_ratio": 0.01}, "tsc, wall clock +10000 ppm against the monotonic one"),
        ("clock", {"clock_source": "hpet"}, "hpet (slow to read)"),
        ("gpu-processes", {"foreign_gpu_processes": {0: 2}}, "gpu 0: 2"),
        (
            "gpu-throttling",
            {"gpus": {0: GpuSample(throttle_reasons=("hardware thermal slowdown",), persistent=True)}},
            "gpu 0: hardware thermal slowdown",
        ),
    ],
)
def test_a_spoiler_is_warned_of(name: str, changes: dict[str, object], seen: str) -> None:
    checks = _found(**changes)
    check = checks[name]
    assert (check.status, check.seen) == (CheckStatus.WARNING, seen)
    assert check.why
    assert check.fix
    others = [one for one in checks.values() if one.name != name]
    assert {one.status for one in others} == {CheckStatus.OK}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("hyper-threading", {"cores": _cores(num_logical=8, num_usable=8)}),
        ("usable-cores", {"cores": _cores(num_usable=2)}),
        ("swap", {"swap_used_bytes": 10**9}),
        ("thread-variables", {"variables": {"OMP_NUM_THREADS": "2"}}),
        ("same-device", {"num_gpus": 4}),
        ("gpu-persistence", {"gpus": {0: GpuSample(throttle_reasons=(), persistent=False)}}),
        ("seeds", {"hash_seed": None}),
        ("seeds", {"hash_seed": "random"}),
    ],
)
def test_what_spoils_nothing_by_itself_is_told(name: str, changes: dict[str, object]) -> None:
    check = _found(**changes)[name]
    assert check.status is CheckStatus.INFO
    assert check.fix


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("frequency-governor", {"cores": _cores(governor=None)}),
        ("background-load", {"foreign_ratio": None}),
        ("steal", {"steal_ratio": None}),
        ("hyper-threading", {"cores": _cores(num_physical=None)}),
        ("cpu-heat", {"temperature_c": None, "thermal_events": None}),
        ("gpu-processes", {"gpus": {}}),
        ("gpu-processes", {"foreign_gpu_processes": {}}),
        ("gpu-throttling", {"gpus": {0: GpuSample()}}),
        ("gpu-persistence", {"gpus": {0: GpuSample()}}),
    ],
)
def test_what_is_not_told_is_never_ok(name: str, changes: dict[str, object]) -> None:
    assert _found(**changes)[name].status is CheckStatus.UNKNOWN


@pytest.mark.parametrize(
    ("total", "shares", "parts"),
    [
        (0.99, (0.49, 0.03, 0.002), ": a (pid 1) 49%, b (pid 2) 3%, others 47%"),
        (0.99, (0.496, 0.494), ": a (pid 1) 50%, b (pid 2) 49%"),
        (0.30, (0.28, 0.04), ": a (pid 1) 28%, b (pid 2) 2%"),
        (0.20, (0.001,), ""),
    ],
)
def test_parts_of_the_load_add_up_to_it(total: float, shares: tuple[float, ...], parts: str) -> None:
    busiest = tuple(zip("abc", (1, 2, 3), shares, strict=False))
    check = _found(foreign_ratio=total, busiest=busiest)["background-load"]
    assert check.seen == f"{total:.0%} of the usable cores{parts}"


def test_a_process_of_somebody_else_is_not_to_be_stopped() -> None:
    fix = _found(foreign_ratio=0.5, busiest=(("ffmpeg", 7, 0.5),))["background-load"].fix
    assert fix.startswith("wait until it is over, or ask whose it is; if it is yours: renice")
    assert "kill" not in fix


def test_unknown_load_is_not_quiet() -> None:
    assert not is_quiet(tuple(_found(foreign_ratio=None).values()))


def test_no_accelerator_is_no_gap() -> None:
    checks = _found(num_gpus=0, gpus={}, foreign_gpu_processes={})
    assert checks["gpu-processes"].status is CheckStatus.OK
    assert checks["gpu-processes"].seen == "no accelerator"


def test_a_look_at_this_machine(tmp_path: Path) -> None:
    waits: list[float] = []
    environment = {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "0", "HOME": "/", "PYTHONHASHSEED": "1"}
    seen = look(tmp_path, environment=environment, wait=waits.append)
    assert len(waits) == 1
    assert seen.variables == {"OMP_NUM_THREADS": "2"}
    assert seen.device_variables == {"CUDA_VISIBLE_DEVICES": "0"}
    assert seen.hash_seed == "1"
    assert 0 < seen.disk_free_bytes <= seen.disk_bytes
    assert seen.foreign_ratio is None
    assert len(check_environment(seen)) == len(CHECKS)
