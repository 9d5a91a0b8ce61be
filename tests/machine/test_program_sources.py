"""What the processes of a command hold together, and how long their threads waited for a core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.machine.host.processes import is_helper
from hotloop.machine.host.run_delay import run_delays
from hotloop.machine.host.tree_memory import PAGE_BYTES, tree_memory
from hotloop.machine.monitor.columns import Metric
from hotloop.machine.monitor.program_sources import (
    ROLE_FIELDS,
    ProgramMemorySource,
    ProgramProcesses,
    RunDelaySource,
    TreeMemorySource,
    role_metric,
)

MIB = 1 << 20


def _process(
    proc: Path,
    pid: int,
    parent: int,
    *,
    rss: int,
    shared: int,
    pss: int | None,
    command: str = "python\0x.py\0",
    name: str = "python",
) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (python) R {parent} " + " ".join(["1"] * 20))
    (folder / "statm").write_text(f"9 {rss * MIB // PAGE_BYTES} {shared * MIB // PAGE_BYTES} 0 0 0 0")
    (folder / "cmdline").write_text(command)
    (folder / "comm").write_text(f"{name}\n")
    if pss is not None:
        (folder / "smaps_rollup").write_text(
            f"0-f ---p 0 [rollup]\nRss: 1 kB\nPss: {pss << 10} kB\nPss_Dirty: 3 kB\n"
        )


def _waited(proc: Path, pid: int, thread: int, seconds: float, ran: int = 1) -> None:
    folder = proc / str(pid) / "task" / str(thread)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedstat").write_text(f"{ran} {round(seconds * 1e9)} 7\n")


def test_loader_workers_count_and_what_they_share_counts_once(tmp_path: Path) -> None:
    """403 MiB of the training process say nothing of 456 MiB that three processes hold together."""
    _process(tmp_path, 1, 0, rss=40, shared=30, pss=12)
    _process(tmp_path, 2, 1, rss=403, shared=120, pss=330)
    for worker, pss in ((3, 63), (4, 60)):
        _process(tmp_path, worker, 2, rss=280, shared=180, pss=pss, name="pt_data_worker")
    processes = ProgramProcesses((1,), tmp_path)
    sample = TreeMemorySource(processes, clock=lambda: 0.0).sample(0.0)
    assert sample[Metric("tree_memory_bytes", (("counted", "PSS"),))] == 453.0 * MIB
    assert sample[Metric("tree_num_processes")] == 3.0
    assert [sample[role_metric("loader_workers", field)] for field in ROLE_FIELDS] == [
        123.0 * MIB,
        63.0 * MIB,
        2.0,
    ]
    assert [sample[role_metric("program", field)] for field in ROLE_FIELDS] == [330.0 * MIB, 330.0 * MIB, 1.0]
    assert ProgramMemorySource(processes).sample(0.0)[Metric("worker_memory_bytes")] == 200.0 * MIB


def test_two_ways_of_counting_are_not_added_up(tmp_path: Path) -> None:
    _process(tmp_path, 2, 1, rss=403, shared=120, pss=330)
    _process(tmp_path, 3, 2, rss=280, shared=250, pss=None)
    found = tree_memory((2, 3, 99), tmp_path)
    assert found is not None
    assert (found.method, found.peak_bytes, found.num_processes) == ("USS", (283 + 30) * MIB, 2)
    assert tree_memory((99,), tmp_path) is None


def test_helpers_of_ours_are_not_the_programs(tmp_path: Path) -> None:
    here = Path(__file__).parents[2] / "src"
    _process(tmp_path, 1, 0, rss=40, shared=30, pss=12)
    _process(tmp_path, 2, 1, rss=20, shared=10, pss=9, command=f"python\0-I\0-S\0{here}/hotloop/enter.py\0")
    _process(tmp_path, 3, 2, rss=403, shared=120, pss=330)
    _process(tmp_path, 4, 3, rss=403, shared=120, pss=330, command="python\0-I\0train.py\0")
    assert ProgramProcesses((1,), tmp_path).at(0.0) == {3, 4}
    assert is_helper(2, tmp_path)
    assert not is_helper(99, tmp_path)


def test_counting_pages_is_paid_for_with_time_between_looks(tmp_path: Path) -> None:
    _process(tmp_path, 2, 1, rss=403, shared=120, pss=330)
    _process(tmp_path, 1, 0, rss=40, shared=30, pss=12)
    clock = iter(float(at) for at in range(9))
    source = TreeMemorySource(ProgramProcesses((1,), tmp_path), clock=lambda: next(clock))
    assert source.sample(0.0)
    assert source.sample(199.0) == {}
    assert source.sample(200.0)


def test_threads_that_had_no_core(tmp_path: Path) -> None:
    _process(tmp_path, 1, 0, rss=40, shared=30, pss=12)
    _process(tmp_path, 2, 1, rss=403, shared=120, pss=330)
    source = RunDelaySource(ProgramProcesses((1,), tmp_path))
    _waited(tmp_path, 2, 2, 5.0)
    assert source.sample(0.0) == {}
    _waited(tmp_path, 2, 2, 5.5)
    _waited(tmp_path, 2, 3, 1.0)
    assert source.sample(2.0)[Metric("run_delay_ratio")] == pytest.approx(0.75)


def test_a_kernel_that_keeps_no_times_tells_nothing(tmp_path: Path) -> None:
    _process(tmp_path, 2, 1, rss=403, shared=120, pss=330)
    _waited(tmp_path, 2, 2, 0.0, ran=0)
    assert run_delays((2, 99), tmp_path) == {}


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="a kernel without schedstat")
def test_two_busy_processes_on_one_core_wait_for_each_other() -> None:
    core = min(os.sched_getaffinity(0))
    pin = f"import os, time; os.sched_setaffinity(0, {{{core}}})"
    spin = f"{pin}\nend = time.time() + 0.4\nwhile time.time() < end: pass"
    both = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2)]
    waited = 0.0
    while any(one.poll() is None for one in both):
        waited = max(waited, sum(run_delays(one.pid for one in both).values()))
    assert waited > 0
