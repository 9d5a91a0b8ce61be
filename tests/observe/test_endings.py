"""However a run ends, the user's tree is as it was, no process is left, and what was measured is shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from .conftest import TINY, Observe, hotloop, tree_hash

WRITES = (
    TINY
    + """
"""
).replace(
    "steps += 1\n",
    """steps += 1
        import csv, os, pathlib, shutil
        os.makedirs("runs/a", exist_ok=True)
        torch.save(model.state_dict(), "runs/a/model.pt")
        with open("log.csv", "a") as file:
            csv.writer(file).writerow([steps, loss.item()])
        pathlib.Path("config.txt").write_text("changed")
        if os.path.exists("old.txt"):
            os.remove("old.txt")
        assert sum(1 for _ in open("log.csv")) >= 1
        assert torch.load("runs/a/model.pt", weights_only=True)
""",
    1,
)


def _project(folder: Path) -> str:
    (folder / "config.txt").write_text("mine")
    (folder / "old.txt").write_text("old")
    (folder / "train.py").write_text(WRITES)
    return tree_hash(folder)


def _scratch(folder: Path) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    return {"HOTLOOP_SCRATCH": str(folder)}


@pytest.mark.parametrize("forced", [{}, {"HOTLOOP_NO_NAMESPACES": "1"}], ids=["overlay", "guard"])
def test_the_tree_is_the_same_afterwards(observe: Observe, tmp_path: Path, forced: dict[str, str]) -> None:
    folder = tmp_path / "project"
    before = _project(folder)
    run = observe(WRITES, "--steps", "8", variables={**_scratch(tmp_path / "scratch"), **forced})
    assert run.code == 0, run.err
    assert tree_hash(folder) == before
    assert [path for path in (tmp_path / "scratch").rglob("[!.]*") if path.is_file()] == []
    gaps = [gap["what"] for gap in run.seen["coverage"]]
    assert ("isolation" in gaps) == bool(forced)


@pytest.mark.slow
@pytest.mark.parametrize("forced", [{}, {"HOTLOOP_NO_NAMESPACES": "1"}], ids=["overlay", "guard"])
def test_a_whole_run_keeps_what_it_wrote(observe: Observe, tmp_path: Path, forced: dict[str, str]) -> None:
    folder = tmp_path / "project"
    before = _project(folder)
    run = observe(WRITES, "--full", command=("train.py", "10"), variables=forced)
    assert run.code == 0, run.err
    assert tree_hash(folder) == before
    (kept,) = (folder / ".hotloop").glob("*/files")
    assert f"what the program wrote is in {kept.relative_to(folder)}" in run.err
    assert (kept / "runs" / "a" / "model.pt").stat().st_size > 1000
    assert len((kept / "log.csv").read_text().splitlines()) == 10
    assert (kept / "config.txt").read_text() == "changed"
    assert run.seen["exit_code"] == 0
    if not forced:
        assert (kept.parent / "deleted.txt").read_text() == f"{folder / 'old.txt'}\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_shows_what_was_measured(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "train.py").write_text(TINY)
    # What starts the tests may ignore Ctrl-C (a job in the background does), and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-m", "hotloop", "observe", "--full", "--json", "seen.json", "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        below = _wait_for_training(process)
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()  # a test that fails leaves nothing behind
    assert process.returncode == 130, err
    assert "in each: data forward backward optimizer" in out
    assert "interrupted" in err
    assert (tmp_path / "seen.json").exists()
    _, alive = psutil.wait_procs(below, timeout=10)
    assert alive == []


def _trains(process: psutil.Process) -> bool:
    try:
        return "train.py" in process.cmdline() and process.cpu_times().user > 9
    except psutil.NoSuchProcess:  # a helper of a moment, or what is left of it
        return False


def _wait_for_training(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Wait until the program below has been training for a while: beside others imports alone take five seconds."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        below = psutil.Process(process.pid).children(recursive=True)
        if any(map(_trains, below)):
            return below
        time.sleep(0.2)
    raise AssertionError("the program did not begin to train")


@pytest.mark.slow
def test_a_program_that_leaves_helpers_behind(observe: Observe, tmp_path: Path) -> None:
    mark = f"{tmp_path}/helper"
    program = TINY.replace(
        "steps = 0",
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}])"
        "\nsteps = 0",
    )
    run = observe(program, command=("train.py", "12"))
    assert run.code == 0, run.err
    assert not [p for p in psutil.process_iter(["cmdline"]) if mark in (p.info["cmdline"] or [])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "code"),
    [("sys.exit(7)", 3), ("sys.exit(0)", 0), ("os._exit(5)", 3), ("os.kill(os.getpid(), 9)", 3)],
)
def test_endings_of_its_own(observe: Observe, ending: str, code: int) -> None:
    run = observe(
        TINY.replace("steps += 1", f"steps += 1\n        import os\n        if steps == 9: {ending}")
    )
    assert run.code == code
    assert 2 <= run.seen["step"]["num"] <= 8  # of nine; how many are warm-up is the machine's to say


@pytest.mark.slow
def test_standard_input_is_the_programs(observe: Observe) -> None:
    program = TINY.replace("steps = 0", "line = sys.stdin.readline()\nprint('got', line)\nsteps = 0")
    run = observe(program, command=("train.py", "6"), stdin="a line of mine\n")
    assert "got a line of mine" in run.out


@pytest.mark.slow
def test_output_that_waits_in_a_buffer_is_not_lost_when_the_program_is_ended(observe: Observe) -> None:
    run = observe(TINY.replace("steps = 0", "print('said early')\nsteps = 0"), "--steps", "5")
    assert "said early" in run.out


@pytest.mark.slow
def test_a_full_scratch_folder(observe: Observe, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs a file system of its own")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=70m", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        fill = f"full = open({str(small / 'fill')!r}, 'wb', buffering=0)"
        filler = f"{fill}\ntry:\n    while full.write(bytes(4096)):\n        pass\nexcept OSError:\n    pass\nsteps = 0"
        program = TINY.replace("steps = 0", filler)
        run = observe(program, variables={"HOTLOOP_SCRATCH": str(small), "HOTLOOP_NO_NAMESPACES": "1"})
        assert run.code == 4, run.err
        assert "no space is left" in run.err
    finally:
        subprocess.run(["umount", str(small)], check=False)


def test_no_space_in_the_scratch_folder_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('must not run')")
    done = hotloop(tmp_path, "observe", "train.py", variables={"HOTLOOP_SCRATCH": "/proc/1"})
    assert "must not run" not in done.stderr or done.returncode == 3
