"""A run reaches no process, no System V object and no setting of the kernel that is not its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.launch.isolation.decide import Isolation, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.process import Run, start

REACH = """
import ctypes, os, sys, time
outside = int(sys.argv[1])
def tried(name, way):
    try:
        print(f"{name}: {way()}")
    except OSError as error:
        print(f"{name}: {type(error).__name__}")
tried("signal", lambda: os.kill(outside, 0))
tried("root", lambda: os.listdir(f"/proc/{outside}/root"))
tried("all", lambda: sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:2])
tried("setting", lambda: open("/proc/sys/vm/swappiness", "r+").close())
tried("cgroup", lambda: os.mkdir("/sys/fs/cgroup/cpu/hotloop-test" if os.path.isdir("/sys/fs/cgroup/cpu")
                                 else "/sys/fs/cgroup/hotloop-test"))
tried("remount", lambda: ctypes.CDLL(None).mount(b"none", b"/proc/sys", None, 32 | 4096, None) == 0)
print("object:", ctypes.CDLL(None).shmget(0x686f74, 4096, 0o1600) >= 0)
print("me:", os.getpid(), os.getpgrp(), os.getsid(0))
child = os.fork()
if child == 0:
    time.sleep(600)
print("child:", child, flush=True)
os.waitpid(child, 0)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Run, dict[str, str]]]:
    argv = [sys.executable, "-c", REACH, str(os.getpid())]
    isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=False)
    if not isolation.processes:
        pytest.skip(f"process namespaces are not permitted here: {isolation.missing}")
    scratch = new_scratch("arm")
    run = start(argv, os.environ, isolation, scratch, log=scratch / "log")
    run.wait(lambda: "child:" in run.log_end(), timeout_s=60)
    yield run, dict(line.split(": ", 1) for line in run.log_end().splitlines())
    run.end()
    remove(scratch)


def test_what_is_not_its_own_is_out_of_reach(running: tuple[Run, dict[str, str]]) -> None:
    _, told = running
    assert told["signal"] == "ProcessLookupError"
    assert told["root"] == "FileNotFoundError"
    assert told["all"] == "[1, 2]"
    assert told["setting"] in ("OSError", "PermissionError")
    assert told["cgroup"] in ("OSError", "PermissionError")
    assert told["remount"] == "False", "what is read-only stays so, for root too"
    assert told["me"] == "2 2 2", "it names its own group and session"
    assert told["object"] == "True"
    listed = subprocess.run(["ipcs", "-m"], capture_output=True, text=True, check=False).stdout
    assert "0x00686f74" not in listed


def test_its_processes_are_found_under_the_numbers_that_it_knows(
    running: tuple[Run, dict[str, str]],
) -> None:
    run, told = running
    child = int(told["child"])
    assert run.ids.lives(2)
    assert run.ids.lives(child)
    outside = run.ids.outside(child)
    assert outside in {process.pid for process in run.tree()}
    assert len(run.tree()) == 2, "neither the subreaper nor the namespace's init is the program's"
    run.freeze()
    assert run.wait(lambda: {process.status() for process in run.tree()} == {"stopped"}, timeout_s=20)
    run.thaw()
    run.end()
    assert not run.ids.lives(child)
    assert run.ids.outside(999_999) is None


def test_without_namespaces_numbers_are_the_same(tmp_path: Path) -> None:
    run = start(["sleep", "600"], os.environ, Isolation(), new_scratch("arm"), log=tmp_path / "log")
    try:
        run.wait(lambda: bool(run.tree()), timeout_s=20)
        (process,) = run.tree()
        assert run.ids.outside(process.pid) == process.pid
    finally:
        run.end()
        remove(run.scratch)
