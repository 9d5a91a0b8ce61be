"""Sampled stacks whose truth is known: lines, phases, workers, and the files for other viewers."""

from __future__ import annotations

import pstats
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.deep import HostSamples
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.profile.host_samples import read_host_samples
from hotloop.probe.record.events import Kind
from hotloop.probe.record.result_file import result_path, write_result_file
from hotloop.report.formats.cprofile import cprofile
from hotloop.report.formats.speedscope import SCHEMA, speedscope

from .synthetic import MS, Script

FETCH = "/lib/site-packages/torch/utils/data/_utils/fetch.py"
FRAMES = [
    ["/home/me/train.py", 30, "main", "user"],
    ["/home/me/train.py", 12, "metrics", "user"],
    ["/lib/site-packages/torch/nn/linear.py", 7, "forward", "torch"],
    ["/home/me/train.py", 31, "main", "user"],
    [FETCH, 54, "fetch", "torch"],
    ["/home/me/data.py", 9, "__getitem__", "user"],
    ["/usr/lib/python3.11/threading.py", 320, "wait", "library"],
    ["/usr/lib/python3.11/multiprocessing/queues.py", 100, "get", "library"],
]
METRICS, FORWARD, IDLE = [1, 0], [2, 3], [6]


def training(samples: list[tuple[int, int, int]], thread: int = 1) -> DeepFile:
    """Return what the training process wrote: `(ms, thread, stack)`, 5 ms apart."""
    value = {
        "interval_s": 0.005,
        "frames": FRAMES,
        "stacks": [METRICS, FORWARD, IDLE],
        "samples": [(ms * MS, 5 * MS, ident, stack) for ms, ident, stack in samples],
        "thread": thread,
    }
    return DeepFile(
        name="host", pid=7, rank=None, steps=2, begin_ns=0, end_ns=100 * MS, value=value, error=None
    )


def write_worker(folder: Path, pid: int, parent: int) -> None:
    """Write what a worker saw: three looks at its work and one at its waiting."""
    value = {
        "interval_s": 0.005,
        "frames": FRAMES,
        "stacks": [[5, 4, 0], [7]],
        "samples": [(ms * MS, 5 * MS, 1, int(ms == 20)) for ms in (5, 10, 15, 20)],
        "parent": parent,
    }
    file = DeepFile(
        name="worker", pid=pid, rank=None, steps=0, begin_ns=0, end_ns=20 * MS, value=value, error=None
    )
    write_result_file(result_path(folder, "worker", pid), msgspec.to_builtins(file))


@pytest.fixture
def seen(tmp_path: Path) -> HostSamples:
    """Two steps of 20 ms forward, 10 ms backward, 5 ms optimizer and 15 ms of metrics; a worker; an idle thread."""
    script = Script(tmp_path)
    for _ in range(2):
        script.span(Kind.FORWARD, 20).span(Kind.BACKWARD, 10).span(Kind.OPTIMIZER, 5).wait(15)
    timeline = script.timeline()
    looks = [(ms, 1, int(ms % 50 < 35)) for ms in range(4, 101, 5)]
    looks.append((50, 2, 2))
    write_worker(tmp_path, 8, parent=7)
    write_worker(tmp_path, 9, parent=99)
    return read_host_samples(tmp_path, training(looks), timeline)


def test_lines_by_phase(seen: HostSamples) -> None:
    spent = {(line.line, line.phase): line.spent_s for line in seen.lines if line.process == "train"}
    assert spent[12, "other"] == pytest.approx(0.03)
    assert spent[31, "forward"] == pytest.approx(0.04)
    assert spent[31, "backward"] == pytest.approx(0.02)
    assert sum(line.share for line in seen.lines if line.process == "train") == pytest.approx(1.0)


def test_a_thread_that_waits_is_left_out(seen: HostSamples) -> None:
    assert all(sample.process != "thread" for sample in seen.samples)


def test_a_worker_s_work_is_counted_without_its_waiting(seen: HostSamples) -> None:
    (line,) = [line for line in seen.lines if line.process == "worker"]
    assert (line.path, line.line, line.num, line.share) == ("/home/me/data.py", 9, 3, 1.0)


def test_speedscope_follows_its_schema(seen: HostSamples) -> None:
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(speedscope(seen, "train.py")))
    assert document["$schema"] == SCHEMA
    frames = document["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    assert [profile["name"] for profile in document["profiles"]] == ["training thread", "loader workers"]
    for profile in document["profiles"]:
        assert {"type", "name", "unit", "startValue", "endValue", "samples", "weights"} == set(profile)
        assert (profile["type"], profile["unit"]) == ("sampled", "seconds")
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"] - profile["startValue"])
        assert all(0 <= number < len(frames) for stack in profile["samples"] for number in stack)


def test_a_flame_graph_is_split_by_phase_first(seen: HostSamples) -> None:
    document = speedscope(seen, "train.py")
    frames = document["shared"]["frames"]
    outermost = {frames[stack[0]]["name"] for stack in document["profiles"][0]["samples"]}
    assert outermost == {"[forward]", "[backward]", "[optimizer]", "[other]"}


def test_a_cprofile_file_is_read_by_pstats(seen: HostSamples, tmp_path: Path) -> None:
    file = tmp_path / "program.prof"
    file.write_bytes(cprofile(seen))
    stats = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    main, metrics = ("/home/me/train.py", 30, "main"), ("/home/me/train.py", 12, "metrics")
    _, _, own_s, whole_s, callers = stats[metrics]
    assert (own_s, whole_s) == (pytest.approx(0.03), pytest.approx(0.03))
    assert callers[main][3] == pytest.approx(0.03)
    _, _, own_s, whole_s, _ = stats[main]
    assert own_s == pytest.approx(0.0)
    assert whole_s == pytest.approx(0.1), "a worker's stack begins where it makes a batch"
    dataset = ("/home/me/data.py", 9, "__getitem__")
    assert stats[dataset][2] == pytest.approx(0.015)
