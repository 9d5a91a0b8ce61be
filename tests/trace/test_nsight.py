"""Nsight Systems exports give the same facts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hotloop.model.errors import HotloopError
from hotloop.trace import analyze
from hotloop.trace.read.nsight import is_nsight, read_nsight

_TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
    correlationId INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
    correlationId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT, textId INTEGER);
INSERT INTO StringIds VALUES (1, 'sgemm'), (2, 'cudaLaunchKernel_v7000'), (3, 'cudaStreamSynchronize_v3020'),
    (4, 'ncclDevKernel_AllReduce');
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100-SXM4-80GB', 85899345920, 108);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 4001, 0, 7, 11, 1, 1), (9000, 9500, 0, 8, 12, 4, 4);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4500, 5000, 0, 7, 13, 4096, 1, 0, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 700, 5, 11, 2), (5100, 8000, 5, 14, 3), (8500, 8600, 5, 12, 2);
INSERT INTO NVTX_EVENTS VALUES (400, 9600, 5, 'ProfilerStep#1', NULL);
"""


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "report.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES)
    return path


def test_the_same_facts(export: Path) -> None:
    assert is_nsight(export)
    (analysis,) = analyze(export).traces
    device = analysis.device
    assert device is not None
    assert (device.span_us, device.busy_us) == (8.5, 4.001)
    assert (device.communication_us, device.memory_us) == (0.5, 0.5)
    assert round(1000 * sum(analysis.idle_causes.values())) == 4499
    assert analysis.idle_causes["synchronization_us"] >= 2.9
    assert analysis.device_name == "NVIDIA A100-SXM4-80GB"
    assert [step.number for step in analysis.steps] == [1]
    assert {row.name for row in analysis.kernels} == {
        "sgemm",
        "ncclDevKernel_AllReduce",
        "Memcpy HtoD (Pageable)",
    }
    assert [site.call for site in analysis.syncs] == ["cudaStreamSynchronize"]


def test_missing_tables_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "few.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE StringIds (id INTEGER, value TEXT);")
    assert analyze(path).traces[0].device is None


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE users (name TEXT);")
    with pytest.raises(HotloopError, match="Nsight"):
        list(read_nsight(path))


def test_each_process_of_an_export_is_a_trace(tmp_path: Path) -> None:
    """`nsys profile torchrun ...`: both ranks number their launches alike, and one waits while the other works."""
    first, second = (pid << 24 for pid in (100, 101))
    rows = f"""
    DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY;
    DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME; DELETE FROM NVTX_EVENTS;
    ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD globalPid INTEGER;
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 4000, 0, 7, 11, 1, 1, {first}),
        (5000, 6000, 0, 7, 12, 1, 1, {first}), (2000, 9000, 1, 7, 11, 1, 1, {second});
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 700, {first + 1}, 11, 2), (4500, 4600, {first + 1}, 12, 2),
        (1500, 1600, {second + 1}, 11, 2), (1700, 9100, {second + 1}, 14, 3);
    """
    path = tmp_path / "ranks.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES + rows)
    one, other = analyze(path).traces
    assert (one.file, other.file) == ("ranks.sqlite#100", "ranks.sqlite#101")
    assert one.device is not None
    assert one.device.idle_us == 1.0
    assert one.idle_causes["synchronization_us"] == 0, "it is the other process that waits"
    assert other.kernels[0].queue_us == 0.5
