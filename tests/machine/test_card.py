"""The machine card: how a rate is measured, what a disk in memory is called, what is kept and missing."""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hotloop.machine.card import cache as card_cache
from hotloop.machine.card import card, torch_process
from hotloop.machine.card.cache import load_card, machine_card, save_card
from hotloop.machine.card.disk_rate import disk_rates
from hotloop.machine.card.memory_rate import array_bytes, memory_rate
from hotloop.machine.card.numpy_rates import numpy_rates
from hotloop.machine.card.repeat import measure_rate
from hotloop.machine.card.torch_process import TorchError, torch_rates
from hotloop.machine.devices.gpu_class import gpu_class
from hotloop.machine.host.mounts import Mount, mount_of
from hotloop.machine.host.topology import core_list, cores
from hotloop.model.errors import HotloopError
from hotloop.model.machine import Cores, DiskRates, MachineCard, MachineIdentity, Rate


class _Clock:
    """Work takes the next of its durations; nothing else takes time."""

    def __init__(self, *durations_s: float) -> None:
        self.now_s = 0.0
        self._durations_s = iter(durations_s)

    def __call__(self) -> float:
        return self.now_s

    def work(self) -> float:
        self.now_s += next(self._durations_s)
        return 100.0


def _write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_a_rate_is_the_median_of_repeats_after_a_warm_up() -> None:
    clock = _Clock(50.0, 1.0, 2.0, 1.0, 4.0, 1.0, 5.0, 2.0)
    rate = measure_rate(clock.work, "by hand", budget_s=100.0, clock=clock)
    assert rate == Rate(median=50.0, low=20.0, high=100.0, num=7, method="by hand")


def test_repeats_end_with_the_budget_but_not_before_the_third() -> None:
    clock = _Clock(1.0, 10.0, 10.0, 10.0)
    assert measure_rate(clock.work, "", budget_s=1.0, clock=clock).num == 3


def test_arrays_are_larger_than_the_cache_and_small_beside_the_memory() -> None:
    assert array_bytes(32 << 20, 64 << 30) == 128 << 20
    assert array_bytes(None, 64 << 30) == 64 << 20
    assert array_bytes(1 << 30, 64 << 30) == 1 << 30
    assert array_bytes(32 << 20, 120 << 20) == 10 << 20


def test_memory_and_matmul_are_measured_without_torch() -> None:
    memory = memory_rate(2, 4 << 20, budget_s=0.0)
    assert memory.low <= memory.median <= memory.high
    assert memory.num == 3
    rates = numpy_rates("a processor", budget_s=0.0, size=64)
    assert (rates.device, rates.name, list(rates.matmul_flop_per_s)) == ("cpu", "a processor", ["fp32"])
    assert rates.matmul_flop_per_s["fp32"].median > 0


def test_a_disk_is_read_past_the_cache_and_left_clean(tmp_path: Path) -> None:
    disk = disk_rates(tmp_path, file_bytes=4 << 20, budget_s=0.0)
    assert list(tmp_path.iterdir()) == []
    sequential = disk.sequential_read_bytes_per_s
    assert sequential is not None
    assert disk.cache_bypassed == ("from memory" not in sequential.method)
    assert disk.random_4kib_reads_per_s is not None
    assert disk.random_128kib_read_bytes_per_s is not None


@pytest.mark.skipif(mount_of(Path("/dev/shm")).kind != "tmpfs", reason="needs a tmpfs")
def test_a_disk_in_memory_is_called_memory() -> None:
    disk = disk_rates(Path("/dev/shm"), file_bytes=4 << 20, budget_s=0.0)
    assert disk.filesystem == "tmpfs"
    assert not disk.cache_bypassed
    assert disk.sequential_read_bytes_per_s is not None
    assert "from memory" in disk.sequential_read_bytes_per_s.method


def test_no_space_and_no_folder_are_said_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="MB free") as full:
        disk_rates(tmp_path, file_bytes=1 << 60)
    assert "--folder" in full.value.hint
    with pytest.raises(HotloopError, match="cannot be written"):
        disk_rates(tmp_path / "missing")
    disk, missing = card.measure_disk(tmp_path / "missing")
    assert disk is None
    assert missing[0].what == "disk"


def test_a_folder_is_on_the_longest_mount_above_it(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "a / ext4 rw 0 0\nb /data xfs rw 0 0\nc /data/my\\040set nfs rw 0 0\nd /dat tmpfs rw 0 0\n"
    )
    assert mount_of(Path("/data/my set/train"), mounts) == Mount("/data/my set", "nfs", "c")
    assert mount_of(Path("/data/other"), mounts) == Mount("/data", "xfs", "b")
    assert mount_of(Path("/home"), mounts) == Mount("/", "ext4", "a")
    assert mount_of(Path("/home"), tmp_path / "none") == Mount("/", "unknown")


@pytest.mark.parametrize(
    ("device", "family", "half", "max_workers"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100", "bf16", 8),
        ("Tesla V100-SXM2-32GB", "V100", "fp16", 4),
        ("Tesla T4", "T4", "fp16", 4),
        ("AMD Instinct MI250X", "MI250X", "fp16", 8),
        ("AMD Instinct MI300X", "MI300", "bf16", 8),
        ("NVIDIA H100 80GB HBM3", "H100", "bf16", 8),
        ("NVIDIA H200", "H200", "bf16", 8),
    ],
)
def test_a_device_belongs_to_a_family(device: str, family: str, half: str, max_workers: int) -> None:
    found = gpu_class(device)
    assert found is not None
    assert (found.name, found.half_precision, found.loader.max_workers) == (family, half, max_workers)


@pytest.mark.parametrize("device", ["NVIDIA RTX A1000", "NVIDIA GeForce RTX 4090", "T400", ""])
def test_an_unknown_device_gets_no_advice(device: str) -> None:
    assert gpu_class(device) is None


def test_wiring_is_read_from_the_kernel(tmp_path: Path) -> None:
    cpu0 = "sys/devices/system/cpu/cpu0"
    _write(tmp_path, f"{cpu0}/cpufreq/cpuinfo_max_freq", "3500000\n")
    _write(tmp_path, f"{cpu0}/cpufreq/scaling_governor", "powersave\n")
    _write(tmp_path, f"{cpu0}/cache/index3/size", "16384K\n")
    _write(tmp_path, "sys/devices/system/node/node0/cpulist", "0-1,4\n")
    _write(tmp_path, "sys/devices/system/node/node1/cpulist", "2-3\n")
    _write(tmp_path, "proc/cpuinfo", "flags : fpu hypervisor\n\n")
    wiring = cores(tmp_path)
    assert (wiring.max_clock_hz, wiring.governor, wiring.hypervisor) == (3.5e9, "powersave", True)
    assert wiring.numa_nodes == ((0, 1, 4), (2, 3))
    assert wiring.last_level_cache_bytes == 16 << 20
    bare = cores(tmp_path / "none")
    assert (bare.max_clock_hz, bare.governor, bare.hypervisor, bare.numa_nodes) == (None, None, None, ())


def test_core_lists() -> None:
    assert core_list("0-3,8") == (0, 1, 2, 3, 8)
    assert core_list("") == ()


def _card(**changes: object) -> MachineCard:
    who = MachineIdentity(cpu_model="x", num_cores=1, memory_bytes=1, os="Linux", python_version="3.11")
    known = MachineCard(
        measured_at="2026-01-01T00:00:00+00:00",
        identity=who,
        cores=Cores(num_logical=1, num_usable=1),
        wall_s=1.0,
    )
    return msgspec.structs.replace(known, **changes)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Measuring is replaced by a note that it happened."""
    happened: list[str] = []

    def measure_card(folder: Path, progress: Callable[[str], None]) -> MachineCard:
        happened.append("card")
        mount = mount_of(folder)
        disk = DiskRates(folder=str(folder), mount=mount.point, filesystem=mount.kind, cache_bypassed=True)
        return _card(torch_version=torch_process.torch_version(), disk=disk)

    def measure_disk(folder: Path) -> tuple[DiskRates | None, tuple[()]]:
        happened.append("disk")
        return None, ()

    monkeypatch.setattr(card_cache, "measure_card", measure_card)
    monkeypatch.setattr(card_cache, "measure_disk", measure_disk)
    return happened


def test_a_card_is_measured_once(tmp_path: Path, measured: list[str]) -> None:
    first, was_kept = machine_card(tmp_path, cache=tmp_path)
    again, is_kept = machine_card(tmp_path, cache=tmp_path)
    assert (was_kept, is_kept, measured) == (False, True, ["card"])
    assert first == again


def test_fresh_measures_again(tmp_path: Path, measured: list[str]) -> None:
    machine_card(tmp_path, cache=tmp_path)
    machine_card(tmp_path, cache=tmp_path, fresh=True)
    assert measured == ["card", "card"]


def test_another_torch_measures_again(
    tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_card(tmp_path, cache=tmp_path)
    monkeypatch.setattr(card_cache, "torch_version", lambda: "99.0")
    machine_card(tmp_path, cache=tmp_path)
    assert measured == ["card", "card"]


def test_another_disk_measures_only_the_disk(tmp_path: Path, measured: list[str]) -> None:
    machine_card(tmp_path, cache=tmp_path)
    machine_card(Path("/proc"), cache=tmp_path)
    assert measured == ["card", "disk"]


def test_a_broken_or_foreign_card_is_no_card(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    save_card(path, _card())
    assert load_card(path) == _card()
    save_card(path, _card(schema=999))
    assert load_card(path) is None
    path.write_text(path.read_text()[:50])
    assert load_card(path) is None
    assert load_card(tmp_path / "none") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    save_card(tmp_path / "file" / "card.json", _card())
    assert load_card(tmp_path / "file" / "card.json") is None


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert card_cache.cache_folder() == Path("/somewhere/hotloop")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert card_cache.cache_folder() == Path.home() / ".cache/hotloop"


def test_a_torch_that_fails_says_how_to_see_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: no libcudart' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(TorchError, match="no libcudart") as failure:
        torch_rates(1)
    assert "hotloop.machine.card.torch_rates" in failure.value.hint
    python.write_text("#!/bin/sh\necho welcome\n")
    with pytest.raises(TorchError, match="no result"):
        torch_rates(1)


def test_without_torch_the_card_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(card, "torch_version", lambda: None)
    monkeypatch.setattr(card, "disk_rates", lambda folder: disk_rates(folder, 4 << 20, 0.0))
    monkeypatch.setattr(card, "array_bytes", lambda cache, free: 4 << 20)
    told: list[str] = []
    measured_card = card.measure_card(tmp_path, told.append)
    assert told == ["disk", "memory", "compute"]
    assert list(measured_card.devices[0].matmul_flop_per_s) == ["fp32"]
    hints = {one.what: one.hint for one in measured_card.not_measured}
    assert card.INSTALL_TORCH in hints.values()
    assert measured_card.torch_version is None
    assert msgspec.json.decode(msgspec.json.encode(measured_card), type=MachineCard) == measured_card


@pytest.mark.slow
def test_torch_measures_every_precision_on_the_processor() -> None:
    pytest.importorskip("torch")
    rates = torch_rates(1)
    cpu = rates.devices[0]
    assert cpu.device == "cpu"
    assert set(cpu.matmul_flop_per_s) >= {"fp32", "bf16"}
    assert set(cpu.convolution_flop_per_s) >= {"fp32", "bf16"}
    assert all(rate.low <= rate.median <= rate.high for rate in cpu.matmul_flop_per_s.values())
