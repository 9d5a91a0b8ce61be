"""The storage is timed in every way of reading; a network mount is named."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from hotloop.cli.app import run
from hotloop.data import bench as bench_module
from hotloop.data.bench import bench
from hotloop.machine.host.mounts import Mount
from hotloop.model.data import ReadRate
from hotloop.model.errors import HotloopError
from hotloop.model.machine import Rate
from hotloop.stats.reading import in_order_against_random


def test_every_way_of_reading_is_timed(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "mount_of", lambda _: Mount("/data", "nfs4", "filer:/export"))
    report = bench(files, budget_s=0.05)
    ways = {(rate.cache, rate.order, rate.num_workers) for rate in report.rates}
    assert {("cold", "random", 1), ("warm", "sequential", 2)} <= ways
    assert report.server == "filer:/export"
    for rate in report.rates:
        assert rate.bytes_per_s.low <= rate.bytes_per_s.median <= rate.bytes_per_s.high
        assert rate.petabyte_s == pytest.approx(1000 * rate.terabyte_s)


def test_files_in_memory_have_no_cold_read(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "mount_of", lambda _: Mount("/dev/shm", "tmpfs", "tmpfs"))
    report = bench(files, budget_s=0.05)
    assert report.in_memory
    assert {rate.cache for rate in report.rates} == {"warm"}


def _row(order: str, num_workers: int, *rates: float, cache: str = "cold") -> ReadRate:
    speed = Rate(
        median=sorted(rates)[len(rates) // 2], low=min(rates), high=max(rates), num=len(rates), method=""
    )
    return ReadRate(
        order=order,
        cache=cache,
        num_workers=num_workers,
        bytes_per_s=speed,
        repeats_bytes_per_s=rates,
        reads_per_s=1.0,
        terabyte_s=1.0,
        petabyte_s=1.0,
    )


def test_the_headline_is_of_comparable_rows_over_their_repeats(tmp_path: Path) -> None:
    """One fast repeat in order by two processes, and a slow one at random by one, are no 2.54 times."""
    (tmp_path / "a").write_bytes(b"x")
    report = bench(tmp_path, budget_s=0.01)
    rows = (
        _row("sequential", 1, 90, 95, 92, 91, 93),
        _row("random", 1, 101, 99, 98, 102, 100),
        _row("sequential", 2, 110, 260, 118, 121, 117),
        _row("random", 2, 150, 149, 152, 151, 148),
        _row("sequential", 2, 900, 900, 900, 900, 900, cache="warm"),
        _row("random", 8, 10, 10, 10, 10, 10),
    )
    found = in_order_against_random(msgspec.structs.replace(report, rates=rows))
    assert found is not None
    cache, num_rows, ratio = found
    assert (cache, num_rows) == ("cold", 2)
    assert ratio.ratio < 1, "what the table says"
    alone = msgspec.structs.replace(report, rates=(rows[0], rows[3]))
    assert in_order_against_random(alone) is None


@pytest.mark.parametrize(
    ("kind", "device", "network"),
    [
        ("ext4", "/dev/sda1", False),
        ("nfs4", "filer:/export", True),
        ("fuse.sshfs", "host:", True),
        ("lustre", "10.0.0.1@tcp:/scratch", True),
        ("tmpfs", "tmpfs", False),
    ],
)
def test_network_mounts_are_known(kind: str, device: str, network: bool) -> None:
    assert Mount("/x", kind, device).is_network is network


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(HotloopError, match="empty files"):
        bench(tmp_path)


def test_from_the_command_line(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert run(["data", "bench", str(files), "--seconds", "0.1", "--json", "-", "--quiet"]) == 0
    assert run(["data", "pack", str(files), out, "--quiet"]) == 0
    assert "PackedDataset" in capsys.readouterr().out
    assert run(["data", "check", out, "--json", str(tmp_path / "check.json")]) == 0
    assert "complete and whole" in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "check.json").read_text())["num_different"] == 0
    assert run(["data", "check", str(files), out, "--quiet"]) == 0
    assert "byte for byte" in " ".join(capsys.readouterr().out.split())
    assert run(["data", "check", "a", "b", "c"]) == 2
    (tmp_path / "out" / "shard-000000.tar").unlink()
    assert run(["data", "check", out]) == 1
    assert run(["data", "bench", str(tmp_path / "none")]) == 2
