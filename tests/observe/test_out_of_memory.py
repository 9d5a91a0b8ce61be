"""Whether a run ended for want of memory, and what is made of what its processes wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.observe.decode.spans import Size
from hotloop.observe.run.out_of_memory import Failure, _batch, _read, _told, caught, ran_out
from hotloop.probe.memory_failure.room import device_room, kernel_kills
from hotloop.probe.record.events import Kind
from hotloop.report.content.ran_out import ran_out_told

GIB = 1 << 30
CUDA_VALUE: dict[str, Any] = {
    "error": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB.",
    "asked_bytes": 6 * GIB,
    "device": "cuda:0",
    "stack": [["/venv/site-packages/lib/model.py", 7, "forward"], ["/home/me/train.py", 30, "<module>"]],
    "operator": "aten.mm.default",
    "phase": "forward",
    "tracked": True,
    "host": {"resident_bytes": 3 * GIB},
    "room": {
        "limit": "NVIDIA A100", "limit_bytes": 40 * GIB, "free_bytes": 2 * GIB, "allocated_bytes": 30 * GIB,
        "reserved_bytes": 36 * GIB, "index": 0,
    },
    "by_class": {"activations": 20 * GIB, "optimizer_state": 6 * GIB, "parameters": 3 * GIB},
    "lines": [],
    "others": [],
}  # fmt: skip


def _failure(folder: Path, **changes: Any) -> Failure:
    fields = {"code": 1, "lived_s": 10.0, "largest_bytes": None, "num_kills": 0, "lead": None}
    return Failure(folder=folder, **{**fields, **changes})


def _write(folder: Path, pid: int, value: dict[str, Any]) -> None:
    (folder / f"out-of-memory-{pid}.json").write_text(json.dumps(value))


def test_a_program_that_says_so_ran_out(tmp_path: Path) -> None:
    assert not ran_out(_failure(tmp_path))
    _write(tmp_path, 1, CUDA_VALUE)
    assert ran_out(_failure(tmp_path))


def test_a_killed_program_ran_out_only_where_the_kernel_counted_it(tmp_path: Path) -> None:
    assert ran_out(_failure(tmp_path, code=137, num_kills=1))
    assert not ran_out(_failure(tmp_path, code=137, num_kills=0)), "somebody else sent the signal"
    assert not ran_out(_failure(tmp_path, code=137, num_kills=None))
    kills = kernel_kills()
    assert kills is None or kills >= 0


def test_a_worker_or_rank_that_the_kernel_killed_fails_the_program_with_its_own_code(tmp_path: Path) -> None:
    assert ran_out(_failure(tmp_path, code=1, num_kills=1))
    assert not ran_out(_failure(tmp_path, code=0, num_kills=1)), "a process of somebody else's, or not needed"
    worker = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."
    _write(tmp_path, 1, {**CUDA_VALUE, "error": worker, "died": True, "killed": True})
    found = _told({**CUDA_VALUE, "error": worker}, _read(tmp_path), _failure(tmp_path))
    assert ran_out_told(found).startswith(
        "Your program ran out of memory: the kernel killed one of its processes. It was at"
    )


def test_an_abort_that_only_the_log_tells_of_ran_out(tmp_path: Path) -> None:
    log = (
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted"
    )
    assert ran_out(_failure(tmp_path, code=134, log_end=log))
    assert not ran_out(_failure(tmp_path, code=0, log_end=log))
    _write(tmp_path, 1, {**CUDA_VALUE, "went_on": True})
    assert not ran_out(_failure(tmp_path, code=1, log_end=log)), "the process itself knows it better"


def test_an_error_that_was_caught_is_no_end_and_is_told_in_a_line(tmp_path: Path) -> None:
    brief = {**CUDA_VALUE, "by_class": {}, "num": 27, "went_on": True}
    _write(tmp_path, 1, brief)
    for code in (0, 1):  # a failure later has another cause
        failure = _failure(tmp_path, code=code)
        assert not ran_out(failure)
        assert caught(failure) == (
            "your program ran out of memory at least 27 times, first at /venv/site-packages/lib/model.py:7, which "
            "asked for 6.00 GiB in the phase forward, caught the error, and trained on"
        )
    _write(tmp_path, 1, {**brief, "went_on": False})
    assert "completed no backward pass since" in (caught(_failure(tmp_path, code=0)) or "")
    assert ran_out(_failure(tmp_path, code=1)), "it failed, and had not trained since"
    _write(tmp_path, 1, {**brief, "went_on": False, "died": True})
    assert ran_out(_failure(tmp_path, code=0)), "a thread of it ended so"
    assert caught(_failure(tmp_path, code=0)) is None


def test_of_several_ranks_the_one_that_held_most_is_told(tmp_path: Path) -> None:
    _write(tmp_path, 1, {**CUDA_VALUE, "by_class": {"parameters": 1}})
    _write(tmp_path, 2, CUDA_VALUE)
    found = _read(tmp_path)
    assert found is not None
    assert found["by_class"] == CUDA_VALUE["by_class"]


def test_a_device_s_limit_its_slack_and_the_line_of_the_program_are_told(tmp_path: Path) -> None:
    found = _told(CUDA_VALUE, CUDA_VALUE, _failure(tmp_path))
    assert found.at is not None
    assert (found.at.line, found.user_line) == (7, "/home/me/train.py:30")
    assert (found.limit, found.limit_bytes, found.free_bytes) == ("NVIDIA A100", 40 * GIB, 2 * GIB)
    assert found.reserved_bytes == 36 * GIB
    assert found.held_bytes == 29 * GIB
    assert found.followed
    first = found.remedies[0]
    assert "checkpoint" in first.change
    assert first.enough, "4 GiB are missing, and 20 GiB are activations"


def test_without_a_further_run_what_python_reached_is_told(tmp_path: Path) -> None:
    found = _told({**CUDA_VALUE, "tracked": False}, CUDA_VALUE, _failure(tmp_path))
    assert not found.followed
    assert "Python could reach" in found.method


def test_a_batch_larger_than_all_before_is_named() -> None:
    sizes = [Size(0.0, Kind.FORWARD, 0, 0, 8, tokens) for tokens in (512, 640, 512, 4096)]
    assert (
        _batch(sizes)
        == "the last batch has 4,096 tokens, more than any before: at most 640, 512 in the median"
    )
    assert _batch([*sizes, Size(9.0, Kind.FORWARD, 0, 0, 8, 512)]) == ""
    assert _batch(()) == ""
    assert "the last batch has 9,000 tokens" in _batch(sizes, {"samples": 8, "tokens": 9000})
    assert _batch(sizes[:3], {"samples": 8, "tokens": 600}) == ""


def test_a_batch_of_as_many_samples_that_are_longer_is_named() -> None:
    sizes = [Size(0.0, Kind.FORWARD, 0, 0, 8, 0)] * 3
    last = {"samples": 8, "tokens": 160_000, "shape": [8, 20_000]}
    said = "the last batch is 8 x 20,000, more than any before of another shape: 8 x 140 at most"
    assert _batch(sizes, last, (8, 140)) == said
    assert _batch(sizes, last, (16, 20_000)) == ""
    assert _batch(sizes, last) == ""


def test_a_device_is_asked_where_the_program_uses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_room() is None
    for name, value in {
        "is_initialized": True, "current_device": 1, "mem_get_info": (5, 40), "memory_allocated": 20,
        "memory_reserved": 30,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: type("Device", (), {"name": "A100"}))
    assert device_room() == {
        "limit": "A100", "limit_bytes": 40, "free_bytes": 5, "allocated_bytes": 20, "reserved_bytes": 30, "index": 1,
    }  # fmt: skip
