"""Modules named as the library's, beside the user's script and in the current folder: hotloop runs none of them.

Each writes down that it was imported. What the program itself imports is what it gets without hotloop, and no more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotloop.tune.plan.plan_file import to_toml
from hotloop.tune.plan.plan_folder import with_folder

from ..cli.commands import environment
from ..tune.plans import BF16, plan_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
IN_FOLDER = (
    "contextlib", "runpy", "json", "dataclasses", "resource", "statistics", "queue", "subprocess", "multiprocessing",
    "ctypes", "sqlite3", "importlib", "site", "psutil", "msgspec", "click", "libcst", "numpy", "rich", "hotloop",
    "torch",
)  # fmt: skip
"""In the current folder, where Python looks for what `-c` and `-m` import."""
BESIDE = (
    "resource",
    "statistics",
    "sqlite3",
    "shelve",
    "psutil",
    "msgspec",
    "click",
    "libcst",
    "rich",
)
"""Beside the script: what torch itself does not import."""
TRAIN = """
import sys, statistics
import torch
from torch import nn

torch.set_num_threads(1)
assert statistics.OF_THE_PROGRAM and "hotloop._library" not in statistics.__name__
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = 0
while "--few" not in sys.argv or steps < 5:
    x = torch.randn(16, 32)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
import resource
print("resource of", resource.OF_THE_PROGRAM)
"""


class Project:
    """A folder, and a script in a folder below it, with modules planted in both."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "folder"
        self.script = self.folder / "project" / "train.py"
        self.markers = base / "markers"
        self.script.parent.mkdir(parents=True)
        self.markers.mkdir()
        self.script.write_text(TRAIN)
        for name in IN_FOLDER:
            self._plant(self.folder, name)
        for name in BESIDE:
            self._plant(self.script.parent, name)

    def _plant(self, folder: Path, name: str) -> None:
        mark = self.markers / f"{name} in {folder.name}"
        (folder / f"{name}.py").write_text(f"OF_THE_PROGRAM = True\nopen({str(mark)!r}, 'a').close()\n")

    def imported(self) -> set[str]:
        """Return which of the modules were imported since the last call."""
        found = set(os.listdir(self.markers))
        for name in found:
            (self.markers / name).unlink()
        return found

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder."""
        return subprocess.run(
            words,
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=400,
            check=False,
        )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With a plan that was proven on its script."""
    made = Project(tmp_path_factory.mktemp("planted"))
    plan_file = made.folder / "hotloop.toml"
    plan = with_folder(plan_for(made.script, BF16), plan_file, made.folder)
    plan_file.write_text(to_toml(plan))
    return made


PROGRAM = (sys.executable, "project/train.py")
THEIRS = {"statistics in project", "resource in project"}
"""What the program imports, with hotloop and without."""


def commands(markers: Path) -> dict[str, tuple[list[str], set[str]]]:
    """Return the words of each command, and what the program imports in it at most."""
    really = ["--writable", str(markers)]
    only = ["--budget", "30s", "--only", "zero_grad_none"]
    return {
        "observe": (["observe", "--steps", "3", *really, *PROGRAM], THEIRS),
        "diagnose": (["diagnose"], set()),
        "report": (["report", "--html", "page.html"], set()),
        "sessions": (["sessions"], set()),
        "explain": (["explain", "autocast_bf16"], set()),
        "lint": (["lint", "project"], set()),
        "patch": (["patch"], set()),
        "run": (["run", "--plan", "hotloop.toml", *PROGRAM, "--few"], THEIRS),
        "tune": (["tune", *only, "--plan", "new.toml", *really, *PROGRAM], THEIRS),
        "no torch": (["observe", *really, sys.executable, "-c", "raise SystemExit(1)"], set()),
    }  # fmt: skip


def test_without_hotloop_the_program_imports_its_own(project: Project) -> None:
    done = project.run([*PROGRAM, "--few"])
    assert done.stdout == "resource of True\n", done.stderr
    assert project.imported() == THEIRS


@pytest.mark.parametrize("name", list(commands(Path())))
def test_no_command_runs_a_planted_module(project: Project, name: str) -> None:
    words, theirs = commands(project.markers)[name]
    done = project.run([sys.executable, "-I", "-m", "hotloop", *words])  # as the console script starts
    assert project.imported() <= theirs, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "could not be started" not in done.stderr
    if name == "run":
        assert done.stdout == "resource of True\n", done.stderr
    elif name not in {"no torch", "lint", "patch"}:
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_machine_is_measured_without_them(project: Project, tmp_path: Path) -> None:
    """By the process that needs torch, which starts in another folder."""
    code = "from hotloop.machine.card.torch_process import torch_version; print(torch_version())"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=project.folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() not in {"", "None"}
    assert not project.imported()


def test_hotloop_looks_last_into_what_pythonpath_names(project: Project) -> None:
    code = "from hotloop.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; del sys.path[0]; sys.argv[1:] = ['explain', 'compile']; {code}"],
        cwd=project.script.parent.parent.parent,
        env=environment(PYTHONPATH=str(project.script.parent)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not project.imported()
