"""`hotloop run`: the user's program, as it is, with the plan on."""

from __future__ import annotations

import re
import signal
import subprocess
import venv
from pathlib import Path

import pytest

from ..tune.plans import BF16, WORKERS, write_plan
from .commands import HOTLOOP, environment, hotloop

ECHO = """\
import os, sys
print("words", sys.argv[1:])
print("read", sys.stdin.read())
print("problem", file=sys.stderr)
open("written.txt", "w").write("kept")
sys.exit(7)
"""
WAIT = """\
import os, signal, sys, time
def stop(number, frame):
    print("stopping", flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, stop)
print(os.getpid(), flush=True)
time.sleep(60)
"""
TRAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 1)
    def forward(self, x):
        print("autocast", torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
        return self.line(x)

if __name__ == "__main__":
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=4)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    output = net(x)
    print("workers", loader.num_workers)
    print("output", output.dtype)
"""


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    return script


def test_output_input_files_and_exit_code_are_the_programs_own(tmp_path: Path, echo: Path) -> None:
    write_plan(tmp_path, echo, WORKERS)
    done = hotloop("run", "echo.py", "--plan", "mine", "--force", cwd=tmp_path, stdin="some words")
    assert done.stdout == "words ['--plan', 'mine', '--force']\nread some words\n"
    assert done.stderr.endswith("\nproblem\n")
    assert done.returncode == 7
    assert (tmp_path / "written.txt").read_text() == "kept"


def test_python_before_the_script_and_two_dashes_before_the_command(tmp_path: Path, echo: Path) -> None:
    write_plan(tmp_path, echo)
    assert hotloop("run", "python", "echo.py", "a", cwd=tmp_path).returncode == 7
    assert hotloop("run", "--", "echo.py", "a", cwd=tmp_path).stdout.startswith("words ['a']")


def test_it_becomes_the_program_so_signals_reach_it(tmp_path: Path) -> None:
    script = tmp_path / "wait.py"
    script.write_text(WAIT)
    write_plan(tmp_path, script, WORKERS)
    process = subprocess.Popen(
        [*HOTLOOP, "run", "wait.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    process.send_signal(signal.SIGTERM)
    assert process.stdout.read() == "stopping\n"
    process.stdout.close()
    assert process.wait(timeout=30) == 5


def test_the_plan_is_on(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    write_plan(tmp_path, script, BF16, WORKERS)
    done = hotloop("run", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *forwards, workers, output = done.stdout.splitlines()
    assert forwards == ["autocast True torch.bfloat16"] * len(forwards)
    assert len(forwards) == 17
    assert workers == "workers 2"
    assert output == "output torch.float32"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hotloop.toml", "train.py"]


def _environment_with(folder: Path, torch: str) -> Path:
    """Return the Python of a virtual environment with a torch of that version; empty: it has none."""
    venv.create(folder, symlinks=True)
    if torch:
        info = next(folder.glob("lib/*/site-packages")) / f"torch-{torch}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {torch}\n")
    return folder / "bin" / "python"


class TestFit:
    @pytest.mark.parametrize(
        ("before", "after", "named"),
        [
            ("num_cores = ", "num_cores = 9", "machine: num cores: was 9"),
            ('cpu_model = "', 'cpu_model = "Old ', "machine: cpu model: was Old "),
            ('torch_version = "', 'torch_version = "1', "torch: the plan was made with 12.13.0"),
            ("echo.py", "other.py", "program: the plan was made for"),
        ],
    )
    def test_a_plan_from_elsewhere_is_refused_with_the_difference_named(
        self, tmp_path: Path, echo: Path, before: str, after: str, named: str
    ) -> None:
        path = write_plan(tmp_path, echo, WORKERS)
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))
        done = hotloop("run", "echo.py", cwd=tmp_path)
        assert done.returncode == 2
        assert "was proven elsewhere" in done.stderr
        assert named in done.stderr
        assert "--force" in done.stderr
        assert done.stdout == ""
        assert hotloop("run", "--force", "echo.py", cwd=tmp_path).returncode == 7

    @pytest.mark.parametrize(("torch", "runs"), [("2.6.0", True), ("2.7.0", False), ("", True)])
    def test_torch_is_that_of_the_programs_own_python(
        self, tmp_path: Path, echo: Path, torch: str, *, runs: bool
    ) -> None:
        path = write_plan(tmp_path, echo, WORKERS)
        text = path.read_text()
        path.write_text(re.sub('torch_version = ".*"', 'torch_version = "2.6.0+cu124"', text))
        python = _environment_with(tmp_path / "env", torch)
        done = hotloop("run", str(python), "echo.py", cwd=tmp_path)
        assert done.returncode == (7 if runs else 2), done.stderr
        assert ("the plan was made with 2.6.0+cu124, here is 2.7.0" in done.stderr) is not runs

    def test_an_edited_script_is_run_with_a_word_about_it(self, tmp_path: Path, echo: Path) -> None:
        write_plan(tmp_path, echo, WORKERS)
        echo.write_text(ECHO + "# one line more\n")
        done = hotloop("run", "echo.py", cwd=tmp_path)
        assert done.returncode == 7
        assert "echo.py has been edited since the plan was proven" in done.stderr

    def test_one_line_says_what_is_on(self, tmp_path: Path, echo: Path) -> None:
        write_plan(tmp_path, echo, WORKERS)
        (line,) = (
            line for line in hotloop("run", "echo.py", cwd=tmp_path).stderr.splitlines() if "hotloop:" in line
        )
        assert line.startswith("hotloop: on: loader_workers")
        assert "hotloop:" not in hotloop("run", "--quiet", "echo.py", cwd=tmp_path).stderr


class TestWrongUse:
    def test_without_a_plan_it_says_how_to_make_one(self, tmp_path: Path, echo: Path) -> None:
        done = hotloop("run", "echo.py", cwd=tmp_path)
        assert done.returncode == 2
        assert "there is no plan 'hotloop.toml'" in done.stderr
        assert "hotloop tune COMMAND" in done.stderr

    def test_a_broken_plan_is_not_run(self, tmp_path: Path, echo: Path) -> None:
        (tmp_path / "hotloop.toml").write_text("[[steps")
        done = hotloop("run", "echo.py", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "is not TOML" in done.stderr

    @pytest.mark.parametrize(
        ("command", "message"),
        [("nothing.py", "there is no script 'nothing.py'"), ("no-such-program", "there is no program")],
    )
    def test_what_is_not_there_is_said(self, tmp_path: Path, command: str, message: str) -> None:
        write_plan(tmp_path, None)
        done = hotloop("run", command, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr

    def test_a_command_is_needed(self, tmp_path: Path) -> None:
        done = hotloop("run", cwd=tmp_path)
        assert done.returncode == 2
        assert "COMMAND" in done.stderr
