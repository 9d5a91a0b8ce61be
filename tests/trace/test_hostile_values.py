"""Cells and arguments of any type, and of any size: a trace is read for what it holds, in little memory."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hotloop.model.errors import HotloopError
from hotloop.trace.read.columns import NONE, integers
from hotloop.trace.read.nsight import read_nsight
from hotloop.trace.read.source import find_files

MEGABYTE = "9" * 1_000_000


def test_one_long_text_among_many_ids_takes_no_room_for_all() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    values: list[object] = [*range(2000), MEGABYTE, "stream 7", None, 2.0, True, [1], 10**30]
    found = integers(values)
    assert found[:2000].tolist() == list(range(2000))
    assert found[2000:].tolist() == [NONE, 7, NONE, 2, NONE, NONE, NONE]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB; it was eight gigabytes


def test_numbers_alone_stay_numbers() -> None:
    assert integers([1, None, -3]).tolist() == [1, NONE, -3]
    assert integers([10**30, 1]).tolist() == [NONE, 1]
    assert integers([]).dtype == np.int64


def test_ids_of_a_megabyte_in_a_whole_trace(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": cat, "name": "n", "pid": pid, "tid": 1, "ts": 10.0 * at, "dur": 5.0, "args": args}
        for at in range(1000)
        for cat, pid, args in (
            ("cpu_op", 1, {"External id": MEGABYTE if at == 5 else at}),
            ("kernel", 0, {"External id": at, "correlation": MEGABYTE if at == 6 else at, "stream": 7}),
        )
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
    program = f"{limited} from hotloop.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "trace", "analyze", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2,000 events" in done.stdout


@pytest.mark.parametrize("start", ["'text'", "x'00'", "NULL", "1.5"])
def test_an_nsight_row_whose_start_is_no_number_is_left_out(tmp_path: Path, start: str) -> None:
    path = tmp_path / "report.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table StringIds (id, value)")
    connection.execute("insert into StringIds values (1, 'gemm'), ('x', x'00ff')")
    columns = "start, end, deviceId, streamId, correlationId, demangledName, shortName, graphNodeId"
    connection.execute(f"create table CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
    connection.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (1000, 2000, 0, 7, 1, 1, 1, NULL)")
    connection.execute(
        f"insert into CUPTI_ACTIVITY_KIND_KERNEL values ({start}, 2000, 'd', 's', 'c', 1, 1, 'g')"
    )
    connection.execute("create table TARGET_INFO_GPU (id, name, totalMemory, smCount)")
    connection.execute("insert into TARGET_INFO_GPU values ('a', 7, 'lots', 'many')")
    connection.commit()
    connection.close()
    (trace,) = read_nsight(path)
    assert trace.device.start.tolist() == [1000]
    assert trace.metadata.devices[0].memory_bytes is None


def test_pipes_devices_and_dangling_links_are_no_traces(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "dangling.json").symlink_to("/nowhere")
    (tmp_path / "real.json").write_text("{}")
    assert [path.name for path in find_files([tmp_path])] == ["real.json"]
    for name in ("pipe.json", "zero.json"):
        with pytest.raises(HotloopError, match="is no regular file"):
            find_files([tmp_path / name])
