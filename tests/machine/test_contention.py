"""Foreign load: whose processor time it was, on made-up counters and on a real burning neighbour."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.machine.environment.contention import (
    ForeignLoad,
    foreign_processes,
    foreign_share,
    others_share,
    own_ticks,
    steal_share,
    throttled_s,
)


class FakeProc:
    """Writes /proc/stat and /proc/PID/stat below a folder."""

    def __init__(self, root: Path) -> None:
        self.path = root / "proc"
        self.path.mkdir(parents=True)
        self.machine(busy=0, idle=0)

    def machine(self, *, busy: int, idle: int, steal: int = 0, num_cores: int = 2) -> None:
        """Spread busy, idle and steal ticks over the cores."""
        lines = ["cpu  0 0 0 0 0 0 0 0 0 0"]
        for core in range(num_cores):
            user, rest = divmod(busy, num_cores)
            user += rest if core == 0 else 0
            lines.append(f"cpu{core} {user} 0 0 {idle // num_cores} 0 0 0 {steal // num_cores} 0 0")
        (self.path / "stat").write_text("\n".join([*lines, "intr 0"]) + "\n")

    def process(
        self,
        pid: int,
        *,
        parent: int = 1,
        own: int = 0,
        children: int = 0,
        start: int = 100,
        session: int = 1,
        name: str = "python",
        state: str = "S",
    ) -> None:
        """Write one process's line, fields numbered as in proc(5)."""
        folder = self.path / str(pid)
        folder.mkdir(exist_ok=True)
        before = f"{parent} {pid} {session} 0 -1 0 0 0 0 0"
        times = f"{own} 0 {children} 0"
        (folder / "stat").write_text(f"{pid} ({name}) {state} {before} {times} 20 0 1 0 {start} 0 0 0\n")

    def end(self, pid: int) -> None:
        """Remove the process."""
        (self.path / str(pid) / "stat").unlink()
        (self.path / str(pid)).rmdir()


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


@pytest.fixture
def load(proc: FakeProc) -> ForeignLoad:
    return ForeignLoad(proc.path, frozenset({0, 1}))


def test_time_of_our_tree_is_not_foreign(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10)
    proc.process(11, parent=10)
    proc.process(99)
    before = load.snapshot((10,))
    proc.process(10, own=30)
    proc.process(11, parent=10, own=50)
    proc.process(99, own=20)
    proc.machine(busy=100, idle=100)
    after = load.snapshot((10,))
    assert own_ticks(before, after) == 80
    assert foreign_share(before, after) == pytest.approx(0.1)
    ((busiest, share),) = foreign_processes(before, after)
    assert busiest.pid == 99
    assert share == pytest.approx(0.1)


def test_an_ended_child_moves_into_its_parent_and_counts_once(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10, own=5)
    proc.process(11, parent=10, own=40)
    before = load.snapshot((10,))
    proc.end(11)
    proc.process(10, own=5, children=70)
    proc.machine(busy=30, idle=170)
    after = load.snapshot((10,))
    assert own_ticks(before, after) == 30
    assert foreign_share(before, after) == 0.0


def test_a_grandchild_reaped_through_its_ended_parent_counts_once(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10)
    proc.process(11, parent=10, own=10)
    proc.process(12, parent=11, own=20)
    before = load.snapshot((10,))
    proc.end(12)
    proc.end(11)
    proc.process(10, children=10 + 20 + 7)
    proc.machine(busy=7, idle=193)
    after = load.snapshot((10,))
    assert own_ticks(before, after) == 7


def test_a_child_nobody_waited_for_takes_nothing_from_the_others(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10)
    proc.process(11, parent=10, own=500)
    before = load.snapshot((10,))
    proc.end(11)
    proc.process(10, own=60)
    proc.machine(busy=60, idle=140)
    after = load.snapshot((10,))
    assert own_ticks(before, after) == 60


def test_a_child_born_and_ended_within_the_interval_is_ours(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10)
    before = load.snapshot((10,))
    proc.process(10, children=90)
    proc.machine(busy=90, idle=110)
    assert foreign_share(before, load.snapshot((10,))) == 0.0


def test_an_orphan_stays_ours(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10)
    proc.process(11, parent=10)
    before = load.snapshot((10,))
    proc.end(10)
    proc.process(11, parent=1, own=100)
    proc.machine(busy=100, idle=100)
    assert foreign_share(before, load.snapshot((10,))) == 0.0


def test_a_daemon_of_our_session_is_ours(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10, session=10)
    before = load.snapshot((10,))
    proc.process(12, parent=1, session=10, own=80, start=200)
    proc.machine(busy=80, idle=120)
    assert foreign_share(before, load.snapshot((10,))) == 0.0


def test_a_pid_given_out_again_is_another_process(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10)
    proc.process(11, parent=10, own=300)
    before = load.snapshot((10,))
    proc.process(11, parent=1, own=50, start=900)
    proc.process(10, children=300)
    proc.machine(busy=50, idle=150)
    after = load.snapshot((10,))
    assert 11 not in after.ours
    assert foreign_share(before, after) == pytest.approx(0.25)


def test_a_name_with_parentheses_and_a_stopped_process_are_read(proc: FakeProc, load: ForeignLoad) -> None:
    proc.process(10, name="a) R 1 (b", own=7, state="T")
    process = load.snapshot((10,)).processes[10]
    assert (process.name, process.own_ticks, process.parent, process.stopped) == ("a) R 1 (b", 7, 1, True)


def test_a_process_that_vanishes_while_it_is_read_is_left_out(proc: FakeProc, load: ForeignLoad) -> None:
    (proc.path / "55").mkdir()
    (proc.path / "56").mkdir()
    (proc.path / "56" / "stat").write_text("56 (half")
    assert load.snapshot((55, 56)).processes == {}


def test_a_short_interval_says_nothing(proc: FakeProc, load: ForeignLoad) -> None:
    before = load.snapshot(())
    proc.machine(busy=10, idle=8)
    after = load.snapshot(())
    assert foreign_share(before, after) is None
    assert steal_share(before, after) is None
    assert foreign_processes(before, after) == ()


def test_without_proc_nothing_is_measured(tmp_path: Path) -> None:
    load = ForeignLoad(tmp_path / "none")
    assert foreign_share(load.snapshot(()), load.snapshot(())) is None


def test_steal_is_not_foreign_load(proc: FakeProc, load: ForeignLoad) -> None:
    before = load.snapshot(())
    proc.machine(busy=0, idle=150, steal=50)
    after = load.snapshot(())
    assert steal_share(before, after) == pytest.approx(0.25)
    assert foreign_share(before, after) == 0.0
    assert others_share(before, after) == pytest.approx(0.25), "but nor is it ours"


def test_only_the_cores_that_we_may_use_count(proc: FakeProc) -> None:
    load = ForeignLoad(proc.path, frozenset({1}))
    before = load.snapshot(())
    proc.machine(busy=101, idle=100)
    after = load.snapshot(())
    assert after.total_ticks == 100
    assert foreign_share(before, after) == pytest.approx(0.5)


def test_the_quota_and_hot_cores_are_told(proc: FakeProc, load: ForeignLoad, tmp_path: Path) -> None:
    stat = tmp_path / "sys/fs/cgroup/cpu.stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("usage_usec 5\nthrottled_usec 1000000\n")
    count = tmp_path / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    count.parent.mkdir(parents=True)
    count.write_text("4\n")
    before = load.snapshot(())
    stat.write_text("usage_usec 5\nthrottled_usec 3500000\n")
    after = load.snapshot(())
    assert throttled_s(before, after) == pytest.approx(2.5)
    assert after.thermal_events == 4


class _Tree:
    """Processes that work, fork and end as the kernel accounts for it, with the truth kept beside."""

    def __init__(self, proc: FakeProc) -> None:
        self._proc = proc
        self.worked = 0
        self._busy = 0
        self._next = 101
        self._parents = {100: 1, 50: 1}
        self._own = {100: 0, 50: 0}
        self._children = {100: 0, 50: 0}

    def work(self, which: int, ticks: int) -> None:
        """Process 50 is a stranger, the others are ours."""
        pid = sorted(self._own)[which % len(self._own)]
        self._own[pid] += ticks
        self._busy += ticks
        self.worked += ticks if pid != 50 else 0

    def fork(self, which: int) -> None:
        parents = sorted(set(self._own) - {50})
        self._parents[self._next] = parents[which % len(parents)]
        self._own[self._next] = self._children[self._next] = 0
        self._next += 1

    def end(self, which: int) -> None:
        """A process without children ends and is waited for; the root and the stranger stay."""
        leaves = sorted(set(self._own) - set(self._parents.values()) - {50, 100})
        if leaves:
            pid = leaves[which % len(leaves)]
            self._children[self._parents.pop(pid)] += self._own.pop(pid) + self._children.pop(pid)
            if (self._proc.path / str(pid)).exists():
                self._proc.end(pid)

    def write(self) -> None:
        for pid, parent in self._parents.items():
            self._proc.process(
                pid, parent=parent, own=self._own[pid], children=self._children[pid], start=pid
            )
        self._proc.machine(busy=self._busy, idle=10_000 - self._busy)


_EVENTS = st.lists(
    st.tuples(st.sampled_from(["work", "fork", "end"]), st.integers(0, 9), st.integers(1, 40)), max_size=40
)


@settings(max_examples=60, deadline=None)
@given(_EVENTS, _EVENTS)
def test_every_tick_of_ours_is_counted_once(
    first: list[tuple[str, int, int]], then: list[tuple[str, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        proc = FakeProc(Path(folder))
        tree, load = _Tree(proc), ForeignLoad(proc.path, frozenset({0, 1}))
        snapshots, worked = [], []
        for events in (first, then):
            for kind, which, ticks in events:
                if kind == "work":
                    tree.work(which, ticks)
                else:
                    getattr(tree, kind)(which)
            tree.write()
            snapshots.append(load.snapshot((100,)))
            worked.append(tree.worked)
        assert own_ticks(*snapshots) == worked[1] - worked[0]


_BURN = "import time\nwhile True: pass"
_BURN_HALF_A_SECOND = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc")
def test_a_real_neighbour_is_seen_and_a_real_child_is_not() -> None:
    neighbour = subprocess.Popen([sys.executable, "-c", _BURN])
    try:
        as_stranger, as_ours = ForeignLoad(), ForeignLoad()
        first, first_ours = as_stranger.snapshot(()), as_ours.snapshot((neighbour.pid,))
        last = as_stranger.snapshot(())
        while last.processes[neighbour.pid].own_ticks < 50:
            time.sleep(0.05)
            last = as_stranger.snapshot(())
        last_ours = as_ours.snapshot((neighbour.pid,))
        assert neighbour.pid in {process.pid for process, _ in foreign_processes(first, last, limit=10)}
        share, share_ours = foreign_share(first, last), foreign_share(first_ours, last_ours)
        assert share is not None
        assert share_ours is not None
        assert share > share_ours
        assert own_ticks(first_ours, last_ours) >= 45
        neighbour.send_signal(signal.SIGSTOP)
        while not as_ours.snapshot((neighbour.pid,)).processes[neighbour.pid].stopped:
            time.sleep(0.01)
        stopped = as_ours.snapshot((neighbour.pid,))
        assert own_ticks(stopped, as_ours.snapshot((neighbour.pid,))) == 0
    finally:
        neighbour.kill()
        neighbour.wait()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc")
def test_a_real_child_that_ended_is_counted_where_its_parent_is_ours() -> None:
    load = ForeignLoad()
    before = load.snapshot((os.getpid(),))
    subprocess.run([sys.executable, "-c", _BURN_HALF_A_SECOND], check=True)
    after = load.snapshot((os.getpid(),))
    assert own_ticks(before, after) >= 45
