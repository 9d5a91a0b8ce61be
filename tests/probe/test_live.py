"""What a run shows other tools: metrics for Prometheus, ranges for Nsight Systems."""

from __future__ import annotations

import gzip
import re
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult

from hotloop.cli.app import run
from hotloop.probe.live.meter import Meter
from hotloop.probe.live.nvtx import Nvtx
from hotloop.probe.live.otlp import OpenTelemetry
from hotloop.probe.live.prometheus import Prometheus
from hotloop.probe.process import rank
from hotloop.probe.record.events import TIME_SHIFT, Kind, begin, end, size_event

from ..cli.commands import HOTLOOP, environment

TRAIN = """\
import torch

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    if step == 9:
        print("half way", flush=True)
        input()
print("done", flush=True)
"""
MS = 1_000_000


def at(ms: float, code: int) -> int:
    return round(ms * MS) << TIME_SHIFT | code


STEP = [
    (0, begin(Kind.DATA)),
    (4, end(Kind.DATA)),
    (4, begin(Kind.OPTIMIZER)),
    (5, begin(Kind.FORWARD)),
    (8, end(Kind.FORWARD)),
    (10, end(Kind.OPTIMIZER)),
]
"""An optimizer with a closure: the forward is in its step, and counts once."""


def _three_steps(meter: Meter) -> None:
    """Steps of 10 ms every 20 ms, and a second optimizer's."""
    meter.keep(size_event(16, 0))
    for start in (0, 20, 40):
        for ms, code in STEP:
            meter.keep(at(start + ms, code))
        meter.keep(at(start + 10, end(Kind.OPTIMIZER, 1)))


def test_phases_that_nest_add_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Prometheus(0, "127.0.0.1")
    monkeypatch.setattr(sink, "open", lambda: None)
    _three_steps(Meter(sink))
    value = sink.registry.get_sample_value
    assert value("hotloop_steps_total") == 3
    assert value("hotloop_samples_total") == 16
    assert value("hotloop_step_seconds_sum") == pytest.approx(0.04)
    assert value("hotloop_step_seconds_count") == 2
    spent = {
        name: value("hotloop_phase_seconds_total", {"phase": name})
        for name in ("data", "forward", "optimizer")
    }
    assert spent == {
        "data": pytest.approx(0.012),
        "forward": pytest.approx(0.009),
        "optimizer": pytest.approx(0.009),
    }


def test_a_collector_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    exporter = _Exporter()
    sink = OpenTelemetry(lambda: exporter, "http://collector")
    _three_steps(Meter(sink))
    sink.close()
    sums = {(name, phase): value for name, phase, rank, value in exporter.points if rank == "3"}
    assert sums == {
        ("hotloop.steps", None): 3,
        ("hotloop.samples", None): 16,
        ("hotloop.step.duration", None): pytest.approx(0.04),
        ("hotloop.phase.duration", "data"): pytest.approx(0.012),
        ("hotloop.phase.duration", "forward"): pytest.approx(0.009),
        ("hotloop.phase.duration", "optimizer"): pytest.approx(0.009),
    }


def test_ranks_that_no_launcher_started_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """All children of `mp.spawn` asked for one port, and all but one had none."""
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(rank, "rank_and_world", lambda: (2, 4))
    ports: list[int] = []
    monkeypatch.setattr(prometheus_client, "start_http_server", lambda port, **_: ports.append(port))
    sink = Prometheus(9100, "127.0.0.1")
    sink.open()
    monkeypatch.setenv("LOCAL_RANK", "1")
    sink.open()
    assert ports == [9102, 9101]


class _Exporter(MetricExporter):
    """Keeps the points that it is given last."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[tuple[str, str | None, str | None, float]] = []

    def export(self, metrics_data: Any, timeout_millis: float = 0, **_: Any) -> MetricExportResult:
        self.points = [
            (
                metric.name,
                point.attributes.get("phase"),
                point.attributes.get("rank"),
                getattr(point, "value", None) or point.sum,
            )
            for resource in metrics_data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None:
        pass


class _Ranges:
    def __init__(self) -> None:
        self.log: list[str] = []

    def range_push(self, name: str) -> None:
        self.log.append(name)

    def range_pop(self) -> None:
        self.log.append("end")


def test_ranges_nest_and_close_after_an_exception() -> None:
    ranges = _Ranges()
    follower = Nvtx(ranges)
    for ms, code in STEP:
        follower.keep(at(ms, code))
    assert ranges.log == ["hotloop data", "end", "hotloop optimizer", "hotloop forward", "end", "end"]
    ranges.log.clear()
    for code in (
        begin(Kind.OPTIMIZER),
        begin(Kind.FORWARD),
        end(Kind.OPTIMIZER),
        end(Kind.DATA),
        begin(Kind.LOG),
    ):
        follower.keep(at(0, code))
    assert ranges.log == ["hotloop optimizer", "hotloop forward", "end", "end"]


class _Collector(ThreadingHTTPServer):
    """Takes what is sent, and says which metrics were in it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.port = self.server_address[1]
        self.taken: list[tuple[str, bytes]] = []


class _Take(BaseHTTPRequestHandler):
    server: _Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.taken.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[_Collector]:
    server = _Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_real_run_is_served_while_it_works(tmp_path: Path, collector: _Collector) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            *HOTLOOP,
            "run",
            "--metrics",
            str(port),
            "--otlp",
            f"http://127.0.0.1:{collector.port}",
            "--nvtx",
            "train.py",
        ],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n"
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
    out, err = process.communicate("\n", timeout=60)
    assert re.search(r"^hotloop_steps_total 10\.0$", text, re.MULTILINE)
    assert re.search(r"^hotloop_samples_total 40\.0$", text, re.MULTILINE)
    assert 'hotloop_phase_seconds_total{phase="backward"}' in text
    assert (process.returncode, out) == (0, "done\n")
    assert f"metrics at http://127.0.0.1:{port}/metrics" in err
    assert f"metrics go to http://127.0.0.1:{collector.port}/v1/metrics" in err
    assert collector.taken[-1][0] == "/v1/metrics"
    assert b"hotloop.step.duration" in collector.taken[-1][1], "sent at the end, too"
    assert "goes on without --nvtx" in err or "CUDA" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"], "no file is written"


def test_a_port_that_is_none_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--metrics", "99999", "train.py"]) == 2
    assert "is not a port" in capsys.readouterr().err


def test_a_collector_is_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--otlp", "localhost:4318", "train.py"]) == 2
    assert "is not an address" in capsys.readouterr().err
