"""A process that the program started is killed by the kernel: the program fails with an exception of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch.multiprocessing.spawn import ProcessExitedException

from hotloop.probe.memory_failure import room, witness
from hotloop.probe.memory_failure.words import says_child_was_killed

WORKER = RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")


@pytest.mark.parametrize(
    ("error", "killed"),
    [
        (WORKER, True),
        (
            BrokenProcessPool(
                "A process in the process pool was terminated abruptly while the future was ..."
            ),
            True,
        ),
        (ProcessExitedException("process 0 terminated with signal SIGKILL", 0, 1, 9), True),
        (subprocess.CalledProcessError(-9, "python"), True),
        (
            RuntimeError(
                "train.py FAILED\n  exitcode  : -9 (pid: 7)\n  Signal 9 (SIGKILL) received by PID 7"
            ),
            True,
        ),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Terminated. "), False),
        (None, False),
    ],
)
def test_the_words_of_a_child_that_was_killed(error: BaseException | None, killed: bool) -> None:
    assert says_child_was_killed(error) is killed


@pytest.mark.parametrize("more", [1, 0])
def test_it_counts_where_the_kernel_has_killed_one_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    kills = iter((3, 3 + more))
    monkeypatch.setattr(witness, "kernel_kills", lambda: next(kills))
    probe: Any = SimpleNamespace(folder=tmp_path, survive=lambda _: contextlib.nullcontext())
    one = witness.Witness(probe)
    monkeypatch.setattr(sys, "last_value", WORKER, raising=False)
    one.at_exit()
    told = [json.loads(path.read_text()) for path in tmp_path.glob("out-of-memory-*.json")]
    assert [(value["killed"], value["died"]) for value in told] == [(True, True)] * more


def test_the_kernel_is_asked_for_the_process_s_own_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_groups", lambda *_: [(tmp_path, "memory.max", "memory.current")])
    machines = room.kernel_kills()
    (tmp_path / "memory.events").write_text("low 0\nhigh 2\nmax 9\noom 3\noom_kill 2000000\n")
    assert room.kernel_kills() == 2_000_000
    assert machines != 2_000_000


def test_what_processes_share_has_a_limit_of_its_own() -> None:
    found = room.shared_memory_room()
    assert not found or found["limit_bytes"] >= found["free_bytes"]
