"""Files as they come: chunks, compression, archives, damage."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hotloop.model.errors import HotloopError
from hotloop.trace import read_trace, read_traces
from hotloop.trace.read.clock import NO_TIME, ImpreciseError, nanoseconds
from hotloop.trace.read.kinds import Kind, is_communication, kind_of
from hotloop.trace.read.reader import read_blocks
from hotloop.trace.read.source import GzipBlocks, PlainBlocks
from hotloop.trace.read.trace import Trace
from tests.trace.example import example_events, example_trace, host, kernel


def _read(data: bytes) -> Trace:
    return read_blocks("test.json", PlainBlocks(io.BytesIO(data)))


def set_chunk(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("hotloop.trace.read.stream.CHUNK", size)
    monkeypatch.setattr("hotloop.trace.read.reader.CHUNK", size)


def _same(a: Trace, b: Trace) -> bool:
    return np.array_equal(a.host.start, b.host.start) and np.array_equal(a.device.end, b.device.end)


def test_reads_events_and_metadata(small_trace: Path) -> None:
    trace = read_trace(small_trace)
    assert len(trace.host) == 9
    assert len(trace.device) == 2
    assert trace.metadata.rank == 3
    assert trace.metadata.devices[0].name == "NVIDIA A100-SXM4-40GB"
    assert trace.tally.num_events == len(example_events())


@pytest.mark.parametrize("chunk", [64, 333, 1000, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_chunks_of_any_size_give_the_same(
    monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    data = json.dumps(example_trace(), indent=indent).encode()
    whole = _read(data)
    set_chunk(monkeypatch, chunk)
    cut = _read(data)
    assert _same(whole, cut)
    assert cut.metadata == whole.metadata
    assert not cut.loss.lost_events


def test_metadata_after_the_events() -> None:
    trace = example_trace()
    events = trace.pop("traceEvents")
    data = b'{"traceEvents":' + json.dumps(events).encode() + b"," + json.dumps(trace).encode()[1:]
    assert _read(data).metadata.rank == 3


def test_a_bare_list_is_a_trace() -> None:
    trace = _read(json.dumps(example_events()).encode())
    assert len(trace.device) == 2
    assert not trace.loss.truncated


def test_an_empty_list_is_a_trace() -> None:
    trace = _read(b'{"traceEvents": [], "distributedInfo": {"rank": 1}}')
    assert trace.loss.unreadable is None
    assert trace.metadata.rank == 1


def test_nested_lists_of_objects_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {**event, "args": {**event["args"], "graph": [{"a": 1}, {"a": 2}]}} for event in example_events()
    ]
    set_chunk(monkeypatch, 500)
    trace = _read(json.dumps({"traceEvents": events}).encode())
    assert trace.tally.num_events == len(events)
    assert not trace.loss.lost_events


def test_gzip_of_several_members_and_archives(tmp_path: Path) -> None:
    data = json.dumps(example_trace()).encode()
    whole = _read(data)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(data[:700]) + gzip.compress(data[700:]))
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        for rank in range(3):
            member = tarfile.TarInfo(f"run/rank{rank}.json")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as packed:
        packed.writestr("d.pt.trace.json", data)
    traces = list(read_traces(tmp_path))
    assert len(traces) == 5
    assert all(_same(trace, whole) for trace in traces)


def test_truncated_json_keeps_what_is_there() -> None:
    data = json.dumps(example_trace()).encode()
    trace = _read(data[: data.index(b'"aten::item"')])
    assert trace.loss.truncated
    assert trace.loss.lost_events == 1
    assert len(trace.device) == 1


def test_truncated_gzip_keeps_what_is_there() -> None:
    events = [kernel(f"k{i}", 10 * i, 10 * i + 5, i) for i in range(5000)]
    packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
    trace = read_blocks("cut", GzipBlocks(io.BytesIO(packed[: len(packed) // 2])))
    assert trace.damage is not None
    assert 1000 < len(trace.device) < 5000


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (b"sgemm_64x32", b"sgemm\x01_\n32", "control characters"),
        (b"sgemm_64x32", b"sgemm\xff\xfe", None),
        (b'"dur": 30', b'"dur": NaN', "NaN or infinity"),
        (b"sgemm_64x32", b"C:\\Users\\x", "invalid escapes"),
    ],
)
def test_invalid_json_is_mended(old: bytes, new: bytes, kind: str | None) -> None:
    data = json.dumps(example_trace()).encode()
    assert old in data
    trace = _read(data.replace(old, new))
    assert len(trace.device) == 2
    assert len(trace.host) == 9
    assert trace.metadata.rank == 3
    if kind is not None:
        assert kind in trace.loss.repairs


def test_one_broken_event_costs_one_event() -> None:
    data = json.dumps(example_trace()).encode()
    trace = _read(data.replace(b'"name": "sgemm_64x32"', b'"name" "sgemm_64x32"'))
    assert trace.loss.lost_events == 1
    assert len(trace.device) == 1
    assert len(trace.host) == 9
    assert trace.metadata.rank == 3


def test_wrong_types_are_read_as_far_as_they_can_be() -> None:
    events = example_events()
    events[5]["ts"] = "90"
    events[9]["ts"] = {"no": "time"}
    trace = _read(json.dumps({"traceEvents": events}).encode())
    assert trace.loss.mistyped_events == 2
    assert trace.device.start.tolist() == [90_000]
    assert trace.tally.without_time == 1


def test_what_is_no_trace_says_so() -> None:
    for data in (b"", b"hello", b'{"a": 1}', b"\x00" * 1000):
        trace = _read(data)
        assert trace.loss.unreadable is not None
        assert not len(trace.device)


def test_an_overlong_event_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    set_chunk(monkeypatch, 1 << 12)
    monkeypatch.setattr("hotloop.trace.read.stream._MAX_EVENT", 1 << 16)
    events = example_events()
    text = (
        json.dumps(events[:5])[:-1] + ', {"name": "' + "x" * (1 << 20) + '"}, ' + json.dumps(events[5:])[1:]
    )
    trace = _read(b'{"traceEvents": ' + text.encode() + b"}")
    assert trace.loss.lost_bytes > 1 << 19
    assert len(trace.device) == 2


def test_text_without_events_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.trace.read.stream._MAX_BARREN", 1 << 20)
    monkeypatch.setattr("hotloop.trace.read.stream._MAX_EVENT", 1 << 18)
    set_chunk(monkeypatch, 1 << 16)
    assert _read(b'{"traceEvents": [' + b" " * (8 << 20)).loss.unreadable is not None


def test_a_zip_bomb_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.trace.read.source._BOMB_FLOOR", 1 << 18)
    monkeypatch.setattr("hotloop.trace.read.source._COMPRESSED_STEP", 1 << 10)
    packed = gzip.compress(b'{"traceEvents": [' + b"{}," * (4 << 20))
    blocks = GzipBlocks(io.BytesIO(packed))
    trace = read_blocks("bomb", blocks)
    assert trace.damage is not None
    assert trace.num_bytes < 4 << 20


def test_nanoseconds_are_exact() -> None:
    assert nanoseconds([1, 2.5, 3603029046038.437]).tolist() == [1000, 2500, 3603029046038437]
    assert nanoseconds([1661203462598738]).tolist() == [1661203462598738000]
    large = [1695835542481129.0, 4458676788066.066]
    for others in ([], [None]):  # such as the names of threads, which have no time
        exact = nanoseconds([*others, *large]).tolist()
        assert exact[-2:] == [1695835542481129000, 4458676788066066]
    assert nanoseconds([None, 1.8e16, 10**30]).tolist() == [NO_TIME, NO_TIME, NO_TIME]
    with pytest.raises(ImpreciseError):
        nanoseconds([9_000_000_000_000.123])


def test_times_beyond_a_float_are_read_from_the_text() -> None:
    base = 1_751_410_836_123_456  # microseconds since 1970: a float is a quarter microsecond coarse there
    event = json.dumps(kernel("k", 0, 1, 1)).replace('"ts": 0, "dur": 1', f'"ts": {base}.789, "dur": 0.003')
    trace = _read(b'{"traceEvents": [' + event.encode() + b"]}")
    assert trace.device.start.tolist() == [base * 1000 + 789]
    assert trace.device.end.tolist() == [base * 1000 + 792]


def test_durations_that_no_clock_gives() -> None:
    events = [
        kernel("a", 0, 5, 1),
        {**kernel("b", 10, 12, 2), "dur": 18446744073709.551e3},
        {**kernel("c", 20, 25, 3), "dur": -4},
    ]
    trace = _read(json.dumps({"traceEvents": events}).encode())
    assert trace.tally.overflowing_duration == 1
    assert trace.tally.negative_duration == 1
    assert (trace.device.end - trace.device.start).tolist() == [5000, 0, 0]


@pytest.mark.parametrize(
    ("phase", "category", "kind"),
    [
        ("X", "Operator", Kind.OPERATOR),
        ("X", "Kernel", Kind.KERNEL),
        ("X", "gpu_memcpy", Kind.MEMCPY),
        ("X", "Memset", Kind.MEMSET),
        ("X", "cuda_driver", Kind.CALL),
        ("X", "privateuse1_runtime", Kind.CALL),
        ("X", "Runtime", Kind.CALL),
        ("X", "inductor", Kind.OTHER),
        ("B", "cpu_op", Kind.UNPAIRED),
    ],
)
def test_kinds(phase: str, category: str, kind: Kind) -> None:
    assert kind_of(phase, category) == kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", True),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", True),
        ("rcclGenericKernel<1, false>", True),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(...)", True),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport", True),
        ("triton_red_fused_add_mean", False),
        ("void at::native::reduce_kernel<512, 1>", False),
    ],
)
def test_communication_by_name(name: str, expected: bool) -> None:
    assert is_communication(name) is expected


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="does not exist"):
        read_trace(tmp_path / "no.json")
    with pytest.raises(HotloopError, match="no trace in"):
        read_trace(tmp_path)


def test_old_and_new_argument_names_are_one() -> None:
    events = [host("Operator", "aten::add", 0, 9, **{"External id": 5}), kernel("k", 10, 12, 5)]
    events[1]["args"]["external id"] = events[1]["args"].pop("External id")
    events[1]["tid"] = "stream 7"
    trace = _read(json.dumps({"traceEvents": events}).encode())
    assert trace.device.external.tolist() == [5]
    assert trace.device.stream.tolist() == [7]
