"""Broken traces give an answer or a clear error, in bounded memory, whatever is broken about them."""

import gzip
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.errors import HotloopError
from hotloop.trace import analyze
from hotloop.trace.causes.idle import IdleCauses
from hotloop.trace.facts.timeline import DeviceSweep
from hotloop.trace.link.linked_trace import link_trace
from hotloop.trace.read.reader import read_trace
from tests.trace.conftest import SHARED
from tests.trace.example import example_trace
from tests.trace.mutations import MUTATIONS

_MEMORY_LIMIT = 256 << 20
"""Far above what these small traces need (10 MB), far below what would hurt a machine."""


def _originals() -> list[dict[str, Any]]:
    found = [example_trace()]
    for name in ("critical_path_event_sync_a100", "cpu_only", "compile_triton_mi300x"):
        path = SHARED / f"{name}.json.gz"
        if path.exists():
            found.append(json.loads(gzip.decompress(path.read_bytes())))
    return found


def _survives(path: Path) -> str:
    try:
        report = analyze(path, jobs=1)
    except HotloopError as error:
        return "error" if error.message and error.hint else "an error that says nothing"
    msgspec.json.encode(report)
    (analysis,) = report.traces
    if analysis.device is None:
        assert any(note.code in {"no-device-events", "not-a-trace"} for note in analysis.health)
        return "no device"
    assert analysis.device.busy_us + analysis.device.idle_us == pytest.approx(analysis.device.span_us)
    trace = read_trace(path)
    sweep = DeviceSweep(trace.device)
    idle, _ = IdleCauses(link_trace(trace)).split(sweep.busy, sweep.low, sweep.high)
    assert idle.total_ns == sweep.high - sweep.low - sweep.busy.total
    return "answer"


def _run(tmp_path: Path, seeds: range) -> set[str]:
    originals = _originals()
    path = tmp_path / "mutated.json"
    outcomes = set()
    tracemalloc.start()
    try:
        for seed in seeds:
            rng = random.Random(seed)
            mutation = MUTATIONS[seed % len(MUTATIONS)]
            path.write_bytes(mutation(rng, rng.choice(originals)))
            try:
                outcomes.add(_survives(path))
            except Exception as error:
                raise AssertionError(f"seed {seed}, {mutation.__name__}: {error!r}") from error
            assert tracemalloc.get_traced_memory()[1] < _MEMORY_LIMIT, f"seed {seed}"
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    return outcomes


def test_mutated_traces(tmp_path: Path) -> None:
    assert _run(tmp_path, range(48)) in ({"no device", "answer"}, {"no device", "answer", "error"})


@pytest.mark.slow
def test_a_thousand_mutated_traces(tmp_path: Path) -> None:
    assert _run(tmp_path, range(1000)) in ({"no device", "answer"}, {"no device", "answer", "error"})
