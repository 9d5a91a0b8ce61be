"""Timed parts whose truth is known: of several processes together, and what of them comes before any chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.deep import Loading
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.profile.loading import read_loading
from hotloop.probe.record.result_file import result_path, write_result_file

MS = 1_000_000


def part(kind: str, name: str, ms: int, random: bool | None = None) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "path": None,
        "line": None,
        "count": 8,
        "own_ns": ms * MS,
        "random": random,
    }


def file(name: str, pid: int, begin_ms: int, **changes: Any) -> DeepFile:
    """Return what one process wrote: eight samples in two batches."""
    value = {
        "parts": [
            part("open", "io.open", 8),
            part("transform", "Resize", 32, random=False),
            part("decode", "PIL.load", 16),
            part("transform", "RandomCrop", 8, random=pid == 11),
            part("transform", "ToTensor", 8, random=False),
            part("collate", "default_collate", 8),
        ],
        "batches": 2, "samples": 8, "used_bytes": 800, "read": [1600, 16], "padding": [30, 10, 0],
        "folder": {"path": f"/data/{pid}", "opened": 8, "bytes": 5}, "parent": 7, "private_bytes": pid,
        "of_rows": 0, "constant": [],
        **changes,
    }  # fmt: skip
    return DeepFile(
        name=name,
        pid=pid,
        rank=None,
        steps=2,
        begin_ns=begin_ms * MS,
        end_ns=(begin_ms + 50) * MS,
        value=value,
    )


@pytest.fixture
def seen(tmp_path: Path) -> Loading:
    """Two workers at once, a third after them, one of another process, and a training process that unpacks."""
    for pid, begin_ms, parent in ((11, 0, 7), (12, 10, 7), (13, 100, 7), (14, 0, 99)):
        worker = file("worker_loading", pid, begin_ms, parent=parent)
        write_result_file(result_path(tmp_path, "worker_loading", pid), msgspec.to_builtins(worker))
    lead = file("loading", 7, 0, parts=[part("hand_over", "between processes", 24)], batches=0, samples=0)
    loading = read_loading(tmp_path, lead, None)  # type: ignore[arg-type]
    assert loading is not None
    return loading


def test_workers_are_added_up(seen: Loading) -> None:
    assert (seen.process, seen.num_processes, seen.num_samples, seen.num_batches) == ("worker", 2, 24, 6)
    assert seen.sample_s == pytest.approx((3 * 80 + 24) * 1e-3 / 24)
    assert sum(each.share for each in seen.parts) == pytest.approx(1.0)
    assert [each.name for each in seen.parts[:2]] == ["Resize", "PIL.load"]
    assert (seen.used_bytes_per_sample, seen.read_bytes_per_sample, seen.reads_per_sample) == (100, 200, 2)
    assert seen.private_bytes_per_worker == 12
    assert seen.padding == pytest.approx(0.25)
    assert seen.folder is not None
    assert (seen.folder.path, seen.folder.bytes, seen.folder.files_per_sample) == ("/data", None, 1.0)


def test_what_repeats_ends_at_the_first_random_transform(seen: Loading) -> None:
    assert {each.name for each in seen.parts if each.repeats} == {"io.open", "PIL.load", "Resize"}
    assert {each.name for each in seen.parts if each.random} == {"RandomCrop"}


def test_a_process_that_made_no_batch_says_nothing(tmp_path: Path) -> None:
    nothing = file("loading", 7, 0, parts=[], batches=0, samples=0)
    assert read_loading(tmp_path, nothing, None) is None  # type: ignore[arg-type]
