"""Nothing that a run starts outlives it, or hotloop, however it hides and however hotloop ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hotloop.launch.isolation.decide import NO_NAMESPACES, Isolation, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root, sweep
from hotloop.launch.process import start

HIDES = 'env -i setsid sh -c "sleep 600 & echo \\$\\$ {word}; exec sleep 600" & wait'
OWNER = """
import os, sys, time
from pathlib import Path
from hotloop.launch.isolation.decide import Isolation, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, scratch_root
from hotloop.launch.process import start

scratch = new_scratch("arm")
words = ["sh", "-c", sys.argv[1]]
isolation = Isolation()
if sys.argv[2] != "none":
    isolation = plan_isolation(words, Path.cwd(), scratch_root(), network=False)
run = start(words, os.environ, isolation, scratch, log=scratch / "log")
while len(run.tree()) < 3:
    time.sleep(0.02)
run.freeze()
print(*[process.pid for process in run.tree()], flush=True)
time.sleep(600)
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOTLOOP_SCRATCH", str(tmp_path))
    return new_scratch("arm")


@pytest.fixture(params=["none", "namespaces", "guard"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "guard":
        monkeypatch.setenv(NO_NAMESPACES, "1")
    return str(request.param)


@pytest.fixture
def isolation(mode: str, scratch: Path) -> Isolation:
    if mode == "none":
        return Isolation()
    made = plan_isolation(["sh"], Path.cwd(), scratch_root(), network=False)
    assert made.guarded is (mode == "guard")
    return made


def _alive(pids: list[int]) -> list[int]:
    left = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                left.append(pid)
        except psutil.NoSuchProcess:
            continue
    return left


def _soon(holds: Callable[[], bool]) -> bool:
    for _ in range(500):
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_a_child_without_our_environment_in_its_own_session_ends_with_the_run(
    scratch: Path, isolation: Isolation
) -> None:
    run = start(
        ["sh", "-c", HIDES.format(word=uuid.uuid4())], os.environ, isolation, scratch, log=scratch / "log"
    )
    assert _soon(lambda: len(run.tree()) >= 3)
    pids = [process.pid for process in run.tree()]
    run.end()
    assert _alive(pids) == []
    remove(scratch)


def test_what_the_command_leaves_behind_ends_with_it(scratch: Path, isolation: Isolation) -> None:
    words = f"600.{uuid.uuid4().int}"  # process ids are the run's own
    run = start(
        ["sh", "-c", f"setsid sleep {words} > /dev/null & exit 7"],
        os.environ,
        isolation,
        scratch,
        log=scratch / "log",
    )
    assert not run.wait(lambda: False, timeout_s=20)
    assert run.exit_code() == 7
    assert not [one for one in psutil.process_iter(["cmdline"]) if words in (one.info["cmdline"] or ())]
    assert run.end() == 7


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, 137), (signal.SIGTERM, 143), (signal.SIGSEGV, 139)]
)
def test_a_command_that_a_signal_ends_is_said_as_a_shell_does(
    scratch: Path, number: signal.Signals, code: int
) -> None:
    run = start(
        ["sh", "-c", f"kill -{number.value} $$"], os.environ, Isolation(), scratch, log=scratch / "log"
    )
    run.wait(lambda: False, timeout_s=20)
    assert run.exit_code() == code
    run.end()


def test_a_run_ends_when_hotloop_and_its_watchdog_are_killed(tmp_path: Path, mode: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, HIDES.format(word="x"), mode],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOTLOOP_SCRATCH": str(tmp_path)},
    )
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    children = psutil.Process(owner.pid).children()
    watchdogs = [one for one in children if "hotloop.launch.watchdog" in " ".join(one.cmdline())]
    assert len(pids) >= 3
    assert len(watchdogs) == 1
    for process in (*watchdogs, psutil.Process(owner.pid)):
        process.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    assert _soon(lambda: not _alive(pids))


def test_folders_of_dead_owners_are_swept_and_those_of_the_living_stay(scratch: Path, tmp_path: Path) -> None:
    made = "from hotloop.launch.isolation.scratch import new_scratch; print(new_scratch('arm'), flush=True)"
    program = f"import os; {made}; os._exit(9)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    dead = Path(done.stdout.strip())
    assert dead.is_dir()
    assert sweep(scratch_root()) == [dead]
    assert not dead.exists()
    assert scratch.is_dir()


def test_the_orders_of_a_run_hold_no_environment_and_do_not_stay(scratch: Path) -> None:
    variables = {**os.environ, "MY_PASSWORD": "very-secret"}
    run = start(
        ["sh", "-c", 'test "$MY_PASSWORD" = very-secret && echo seen'],
        variables,
        Isolation(),
        scratch,
        log=scratch / "log",
    )
    run.wait(lambda: False, timeout_s=20)
    assert run.log_end() == "seen"
    run.end()
    for path in scratch.rglob("*"):
        assert path.is_dir() or b"very-secret" not in path.read_bytes()
    assert not (scratch / "isolation.json").exists()


def test_a_module_beside_the_script_is_not_imported_by_our_helpers(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("psutil", "json", "signal", "hotloop"):
        (project / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'w').close(); raise SystemExit(3)"
        )
    monkeypatch.chdir(project)
    program = OWNER.replace("run.freeze()", "sys.exit()")
    subprocess.run(
        [
            sys.executable,
            "-P" if sys.version_info >= (3, 11) else "-I",
            "-c",
            program,
            HIDES.format(word="x"),
            "none",
        ],
        check=False,
        capture_output=True,
        env={**os.environ, "HOTLOOP_SCRATCH": str(tmp_path)},
    )
    assert not (tmp_path / "ran").exists()
