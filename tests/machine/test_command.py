"""`hotloop machine`: its text, its JSON, and the real command."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from hotloop.machine.card.cache import kept_card, peak_flop_per_s, save_card
from hotloop.machine.card.torch_process import torch_version
from hotloop.machine.devices.gpu_class import CPU_LOADER, gpu_class
from hotloop.machine.host.identity import fingerprint, identity
from hotloop.machine.report import byte_rates
from hotloop.model.machine import (
    CheckStatus,
    CopyRates,
    Cores,
    DeviceRates,
    DiskRates,
    EnvironmentCheck,
    GpuCard,
    MachineCard,
    MachineIdentity,
    MachineReport,
    NotMeasured,
    Rate,
)
from hotloop.model.quantities import span
from hotloop.report.terminal.machine import render


def _rate(median: float) -> Rate:
    return Rate(median=median, low=0.9 * median, high=1.1 * median, num=7, method="by hand")


def _card() -> MachineCard:
    """A machine with a GPU whose driver library is installed."""
    name = "NVIDIA A100-SXM4-40GB"
    return MachineCard(
        measured_at="2026-01-02T03:04:05+00:00",
        identity=MachineIdentity(
            cpu_model="EPYC 7742",
            num_cores=64,
            memory_bytes=512 << 30,
            os="Linux 6.8 x86_64",
            python_version="3.11.7",
        ),
        cores=Cores(num_logical=128, num_usable=64, numa_nodes=((0,), (1,))),
        torch_version="2.9.0",
        foreign_ratio=0.02,
        wall_s=21.0,
        memory_bytes_per_s=_rate(180e9),
        devices=(
            DeviceRates(device="cpu", name="EPYC 7742", matmul_flop_per_s={"fp32": _rate(2.5e12)}),
            DeviceRates(
                device="cuda:0",
                name=name,
                matmul_flop_per_s={"fp32": _rate(18e12), "bf16": _rate(250e12)},
                convolution_flop_per_s={"bf16": _rate(130e12)},
                memory_bytes_per_s=_rate(1.3e12),
            ),
        ),
        copies=(
            CopyRates(
                device="cuda:0",
                pinned_to_device_bytes_per_s=_rate(24e9),
                device_to_device_bytes_per_s=_rate(600e9),
            ),
        ),
        disk=DiskRates(
            folder="/dev/shm",
            mount="/dev/shm",
            filesystem="tmpfs",
            cache_bypassed=False,
            sequential_read_bytes_per_s=_rate(5e9),
            random_4kib_reads_per_s=_rate(500_000),
        ),
        gpus=(
            GpuCard(
                name=name,
                memory_bytes=40 << 30,
                gpu_class=gpu_class(name),
                pcie="gen 4 x16 of gen 4 x16",
                num_links=12,
            ),
        ),
        not_measured=(NotMeasured("convolution", "torch is not installed", 'pip install "hotloop[torch]"'),),
    )


def _report(card: MachineCard, cached: bool = False) -> MachineReport:
    checks = (
        EnvironmentCheck(name="seeds", status=CheckStatus.INFO, seen="no", why="because", fix="set it"),
        EnvironmentCheck(name="swap", status=CheckStatus.WARNING, seen="1 GB", why="slow", fix="free it"),
        EnvironmentCheck(name="clock", status=CheckStatus.OK, seen="tsc", why="time"),
    )
    petabyte_s = {name: 1e15 / rate.median for name, rate in byte_rates(card)}
    return MachineReport(card=card, cached=cached, petabyte_s=petabyte_s, checks=checks)


def _text(report: MachineReport) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(render(report))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


_SNAPSHOT = """\
Not ready to measure: swap would spoil it.

EPYC 7742
64 of 128 cores usable, 2 NUMA nodes, 512.0 GiB
Linux 6.8 x86_64, Python 3.11.7, torch 2.9.0
measured 2026-01-02 03:04 UTC in 21 s; other processes used 2% of the CPU

rate                              median         low to high  a terabyte takes
disk sequential read          4.66 GiB/s        4.19 to 5.12      3.33 minutes
pinned to cuda:0              22.4 GiB/s        20.1 to 24.6            41.7 s
cuda:0 to itself               559 GiB/s          503 to 615            1.67 s
memory                         168 GiB/s          151 to 184            5.56 s
cuda:0 memory                 1.18 TiB/s        1.06 to 1.30            0.77 s
disk random 4 KiB read   500,000 reads/s  450,000 to 550,000
cpu matmul fp32             2.50 TFLOP/s        2.25 to 2.75
cuda:0 matmul fp32          18.0 TFLOP/s        16.2 to 19.8
cuda:0 matmul bf16           250 TFLOP/s          225 to 275
cuda:0 convolution bf16      130 TFLOP/s          117 to 143

gpu 0: NVIDIA A100-SXM4-40GB, 40 GiB, PCIe gen 4 x16 of gen 4 x16, 12 links
class   A100: try bf16 first, tf32
loader  num_workers 4-8, pin_memory=True, persistent_workers=True,
        prefetch_factor=3
source  a start, not a measurement: Feilian-3D performance guide, 8.4

disk          tmpfs, mounted at /dev/shm
              its files came from memory: these are memory's rates
to compare    a hard disk reads about 140 MiB/s in order, an NVMe disk 2,900
not measured  convolution: torch is not installed
              pip install "hotloop[torch]"

what was looked at on this machine, now

warning: swap
  seen  1 GB
  why   slow
  do    free it

info: seeds
  seen  no
  why   because
  do    set it

ok  clock (tsc)
"""


def test_the_report_at_80_columns() -> None:
    lines = [line.rstrip() for line in _text(_report(_card())).splitlines()]
    assert lines == _SNAPSHOT.splitlines()


def test_what_is_only_worth_knowing_does_not_contradict_the_verdict() -> None:
    report = _report(_card())
    calm = tuple(one for one in report.checks if one.status is not CheckStatus.WARNING)
    first = _text(msgspec.structs.replace(report, checks=calm)).splitlines()[0]
    assert first == "Ready to measure: nothing here spoils times; worth knowing: seeds."


def test_a_kept_card_and_a_noisy_one_say_so() -> None:
    assert "kept since then; --fresh measures again" in _text(_report(_card(), cached=True))
    noisy = msgspec.structs.replace(_card(), foreign_ratio=0.5)
    assert "other processes used 50% of the CPU\nthe rates are too low" in _text(_report(noisy))


def test_a_machine_without_anything_special() -> None:
    plain = msgspec.structs.replace(
        _card(), gpus=(), disk=None, copies=(), torch_version=None, cpu_loader=CPU_LOADER, not_measured=()
    )
    text = _text(_report(plain))
    assert "no torch" in text
    assert "loader      for inference on this CPU, as a start: num_workers=0" in text
    assert "not measured" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.50 s"), (90.0, "1.50 minutes"), (86400.0 * 3, "3.00 days"), (1e15 / 1e6, "31.7 years")],
)
def test_long_times(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_the_peak_is_the_fastest_repeat_of_matmul_or_convolution() -> None:
    assert peak_flop_per_s(_card(), "cuda:0", "bf16") == pytest.approx(275e12)
    assert peak_flop_per_s(_card(), "cuda:0", "fp16") is None
    assert peak_flop_per_s(_card(), "cuda:1", "fp32") is None


def _keep(cache: Path) -> MachineCard:
    """A kept card of this very machine, so that nothing has to be measured."""
    disk = DiskRates(folder=str(cache), mount="/nowhere", filesystem="none", cache_bypassed=True)
    card = msgspec.structs.replace(
        _card(), identity=identity(), torch_version=torch_version(), disk=disk, foreign_ratio=0.0
    )
    save_card(cache / "hotloop" / f"machine-{fingerprint(identity())}.json", card)
    return card


def _run(cache: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "hotloop", "machine", *args],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_what_was_kept_is_given_out_without_measuring(tmp_path: Path) -> None:
    card = _keep(tmp_path)
    assert kept_card(tmp_path / "hotloop") == card
    assert kept_card(tmp_path) is None


def test_the_command_writes_json_with_units_in_its_names(tmp_path: Path) -> None:
    _keep(tmp_path)
    file = tmp_path / "machine.json"
    done = _run(tmp_path, "--json", str(file), "--folder", str(tmp_path), "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written = json.loads(file.read_text())
    assert written["schema"] == 1
    assert written["cached"] is True
    assert written["card"]["memory_bytes_per_s"]["median"] == 180e9
    assert written["card"]["disk"]["folder"] == str(tmp_path)
    assert written["petabyte_s"]["memory"] == pytest.approx(1e15 / 180e9)
    assert {check["name"] for check in written["checks"]} >= {"background-load", "swap", "disk-space"}
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_command_starts_without_torch() -> None:
    code = "import sys, hotloop.cli.machine; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    done = _run(tmp_path, "--folder", str(tmp_path / "missing"))
    assert done.returncode == 2
    assert "missing" in done.stderr


@pytest.mark.slow
def test_the_command_measures_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    done = _run(tmp_path, "--fresh", "--json", str(file), "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(file.read_bytes(), type=MachineReport)
    assert not report.cached
    assert report.card.memory_bytes_per_s is not None
    assert report.card.devices[0].matmul_flop_per_s["fp32"].num >= 3
    assert report.card.identity == identity()
