"""Who the machine is, and when a plan from another one fits."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hotloop.machine.host import cgroup
from hotloop.machine.host.identity import differences, fingerprint, identity, num_cores
from hotloop.model.machine import Accelerator, MachineIdentity


def _machine() -> MachineIdentity:
    return MachineIdentity(
        cpu_model="Xeon (family 6 model 143)",
        num_cores=8,
        memory_bytes=64 << 30,
        isa=("amx_bf16", "avx2"),
        accelerators=(Accelerator("NVIDIA H100", 80 << 30),),
        os="Linux 6.8 x86_64",
        python_version="3.11.7",
    )


def _write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_this_machine_is_itself() -> None:
    machine = identity()
    assert machine == identity()
    assert machine.num_cores >= 1
    assert machine.memory_bytes > 0
    assert differences(machine, identity()) == ()
    assert msgspec.json.decode(msgspec.json.encode(machine), type=MachineIdentity) == machine


def test_identity_does_not_import_torch() -> None:
    code = "import sys, hotloop.machine.host.identity as i; i.identity(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cpu_model": "EPYC"}, "cpu model: was Xeon (family 6 model 143), is EPYC"),
        ({"num_cores": 4}, "num cores: was 8, is 4"),
        ({"isa": ("avx2",)}, "isa: was amx_bf16, avx2, is avx2"),
        ({"accelerators": ()}, "accelerators: was NVIDIA H100, is none"),
        ({"memory_bytes": 32 << 30}, "memory: was 64.0 GiB, is 32.0 GiB"),
    ],
)
def test_a_difference_is_named(change: dict[str, object], named: str) -> None:
    other = msgspec.structs.replace(_machine(), **change)
    assert differences(_machine(), other) == (named,)
    assert fingerprint(other) != fingerprint(_machine())


def test_a_new_python_or_kernel_reserve_is_the_same_machine() -> None:
    other = msgspec.structs.replace(_machine(), memory_bytes=(64 << 30) - (64 << 20), python_version="3.12.1")
    assert differences(_machine(), other) == ()
    assert fingerprint(other) == fingerprint(_machine())


@pytest.mark.parametrize(
    ("before", "after"), [(15.49, 15.51), (23.4, 23.6), (503.4, 503.6), (62.6, 62.9), (11.4, 11.8)]
)
def test_a_new_kernel_is_the_same_class_of_machines(before: float, after: float) -> None:
    one, other = (
        msgspec.structs.replace(_machine(), memory_bytes=int(size * (1 << 30)), os=f"Linux {kernel} x86_64")
        for size, kernel in ((before, "6.8"), (after, "6.11"))
    )
    assert fingerprint(one) == fingerprint(other)


def test_processor_and_instruction_sets_come_from_cpuinfo(tmp_path: Path) -> None:
    text = (
        "processor: 0\nmodel name\t: AMD EPYC\ncpu family\t: 25\nmodel\t: 1\nflags\t: fpu avx2 amx_bf16\n\n"
    )
    _write(tmp_path, "proc/cpuinfo", text)
    machine = identity(tmp_path)
    assert machine.cpu_model == "AMD EPYC (family 25 model 1)"
    assert machine.isa == ("amx_bf16", "avx2")
    assert machine.accelerators == ()


def test_drivers_name_their_devices_without_a_library(tmp_path: Path) -> None:
    _write(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t NVIDIA A100\nIRQ: 7\n")
    _write(tmp_path, "sys/class/drm/card1/device/mem_info_vram_total", str(64 << 30))
    _write(tmp_path, "sys/class/drm/card1/device/product_name", "AMD Instinct MI250X\n")
    _write(tmp_path, "sys/class/drm/card2/device/mem_info_vram_total", str(512 << 20))
    found = identity(tmp_path).accelerators
    assert [device.name for device in found] == ["NVIDIA A100", "AMD Instinct MI250X"]
    assert found[1].memory_bytes == 64 << 30


def test_a_quota_takes_cores_away(tmp_path: Path) -> None:
    _write(tmp_path, "proc/self/cgroup", "0::/a/b\n")
    _write(tmp_path, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    _write(tmp_path, "sys/fs/cgroup/a/cpu.max", "150000 100000\n")
    _write(tmp_path, "sys/fs/cgroup/a/memory.max", "1073741824\n")
    _write(tmp_path, "sys/fs/cgroup/a/b/memory.max", "max\n")
    assert cgroup.quota_cores(tmp_path) == pytest.approx(1.5)
    assert num_cores(tmp_path) == 1
    assert cgroup.memory_limit_bytes(tmp_path) == 1 << 30


def test_version_one_groups_and_a_path_from_outside_the_container(tmp_path: Path) -> None:
    _write(tmp_path, "proc/self/cgroup", "4:memory:/docker/x\n1:cpu,cpuacct:/docker/x\n")
    _write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
    _write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    _write(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    _write(tmp_path, "sys/fs/cgroup/cpu/cpu.stat", "nr_throttled 3\nthrottled_time 2000000000\n")
    assert cgroup.quota_cores(tmp_path) == pytest.approx(0.5)
    assert cgroup.memory_limit_bytes(tmp_path) is None
    assert cgroup.throttled_s(tmp_path) == pytest.approx(2.0)


def test_no_group_is_no_limit(tmp_path: Path) -> None:
    assert cgroup.quota_cores(tmp_path) is None
    assert cgroup.memory_limit_bytes(tmp_path) is None
    assert cgroup.throttled_s(tmp_path) is None
