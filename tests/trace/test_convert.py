"""Other formats hold the same facts, and redacted ones no secrets."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.trace import analyze_trace, read_trace
from hotloop.trace.convert import redact, write_chrome, write_parquet, write_speedscope
from hotloop.trace.ranks.ranks import find_collectives
from tests.trace.example import example_trace, host, kernel
from tests.trace.reading import read_events


def test_chrome_json_reads_back_the_same(small_trace: Path, tmp_path: Path) -> None:
    trace = read_trace(small_trace)
    for name in ("out.json", "out.json.gz"):
        write_chrome(trace, tmp_path / name)
        again = read_trace(tmp_path / name)
        assert again.metadata.rank == 3
        before, after = (analyze_trace(one) for one in (trace, again))
        assert (after.device, after.idle_causes, after.syncs) == (
            before.device,
            before.idle_causes,
            before.syncs,
        )
        assert after.operators == before.operators


def test_chrome_json_keeps_what_ranks_and_the_critical_path_rest_on(tmp_path: Path) -> None:
    reduce = kernel("ncclDevKernel_AllReduce(x)", 30, 90, 1)
    reduce["args"] |= {"Collective name": "allreduce", "Process Group Name": "7"}
    waited = {"device": 0, "stream": 7, "correlation": 2, "wait_on_stream": -1}
    trace = read_events(
        [
            host("cuda_runtime", "cudaLaunchKernel", 10, 20, correlation=1),
            reduce,
            host("cuda_runtime", "cudaStreamSynchronize", 40, 95, correlation=2),
            {**host("cuda_sync", "Stream Sync", 41, 94), "pid": 0, "tid": 7, "args": waited},
        ]
    )
    write_chrome(trace, tmp_path / "out.json")
    again = read_trace(tmp_path / "out.json")
    assert find_collectives(again) == find_collectives(trace)
    assert analyze_trace(again).critical_path == analyze_trace(trace).critical_path
    assert analyze_trace(again).critical_path is not None


def test_chrome_json_keeps_nanoseconds_above_what_floats_hold(tmp_path: Path) -> None:
    trace = read_events([host("cpu_op", "aten::mm", 0, 1)])
    trace.host.start[0] = 1_751_410_836_123_456_789
    trace.host.end[0] = 1_751_410_836_123_456_792
    write_chrome(trace, tmp_path / "out.json")
    again = read_trace(tmp_path / "out.json")
    assert np.array_equal(again.host.start, trace.host.start)
    assert np.array_equal(again.host.end, trace.host.end)


def test_real_traces_convert_without_loss(shared: Path, tmp_path: Path) -> None:
    trace = read_trace(shared / "bert_mi300x.json.gz")
    write_chrome(trace, tmp_path / "out.json.gz")
    before, after = (analyze_trace(one) for one in (trace, read_trace(tmp_path / "out.json.gz")))
    assert (after.device, after.idle_causes) == (before.device, before.idle_causes)
    assert after.memory == before.memory
    assert json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes()))["traceEvents"]


def test_speedscope_opens_and_closes_in_order(small_trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.speedscope.json"
    assert write_speedscope(read_trace(small_trace), target) == 2
    document = json.loads(target.read_text())
    for profile in document["profiles"]:
        stack, last = [], 0
        for event in profile["events"]:
            assert last <= event["at"] <= profile["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert not stack
    assert {"name": "step", "file": "train.py", "line": 10} in document["shared"]["frames"]


def test_parquet_tables(small_trace: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    assert write_parquet(read_trace(small_trace), tmp_path / "tables") == 11
    device = parquet.read_table(tmp_path / "tables" / "device.parquet").to_pylist()
    assert [row["name"] for row in device] == ["sgemm_64x32", "Memcpy DtoH (Device -> Pageable)"]
    assert [row["duration_ns"] for row in device] == [30_000, 2_000]
    assert [row["kind"] for row in device] == ["kernel", "memcpy"]


_SECRETS = (
    "alice",
    "secret_project",
    "corp.example.com",
    "10.1.2.3",
    "hunter2",
    "0x7f00deadbeef",
    "bob",
    "48211",
)


def test_redaction_removes_users_hosts_paths_and_environment(tmp_path: Path) -> None:
    trace: dict[str, Any] = example_trace()
    names = (
        "/home/alice/secret_project/train.py(12): step",
        "secret_project/loop.py(3): run",
        "/Users/bob/env/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward",
        "<built-in method mul of Tensor object at 0x7f00deadbeef>",
        "checkpoint to /mnt/secret_project/alice/run1 on node7.corp.example.com (10.1.2.3)",
        "API_TOKEN=hunter2 alice",
        "torch/optim/adam.py(20): step",
    )
    for index, name in enumerate(names):
        trace["traceEvents"].append(
            {**host("python_function", name, 300 + index, 301 + index), "pid": 48211, "tid": 48211}
        )
    trace["traceEvents"].append(
        host(
            "cpu_op",
            "aten::save",
            400,
            401,
            **{"Call stack": "/home/alice/secret_project/a.py(1): f;b.py(2): g", "Input Dims": []},
        )
    )
    trace |= {"traceName": "/home/alice/x.json", "username": "alice", "hostname": "node7.corp.example.com"}
    source = tmp_path / "trace.json"
    source.write_text(json.dumps(trace))
    clean = redact(read_trace(source))
    write_chrome(clean, tmp_path / "out.json")
    write_speedscope(clean, tmp_path / "out.speedscope.json")
    for target in ("out.json", "out.speedscope.json"):
        text = (tmp_path / target).read_text()
        assert [secret for secret in _SECRETS if secret in text] == []
    assert "train.py(12): step" in clean.names
    assert "torch/nn/modules/linear.py(114): forward" in clean.names
    assert "torch/optim/adam.py(20): step" in clean.names
    assert "sgemm_64x32" in clean.names
    assert analyze_trace(clean).device == analyze_trace(read_trace(source)).device
