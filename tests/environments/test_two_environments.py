"""hotloop in an environment of its own, the program in another one that holds torch alone.

Every command says what it says where both share one environment; no time is asserted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.errors import ExitCode
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import PlanStep
from hotloop.tune.plan.plan_file import to_toml

from ..cli.commands import environment
from ..patch.test_command import TRAIN as ENDS
from ..patch.test_prove_end_to_end import TRAIN as ANOMALOUS
from ..tune.plans import BF16, plan_for
from .environments import hotloop_alone, torch_alone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Rows(Dataset):
    def __init__(self):
        self.x, self.y = torch.randn(256, 64), torch.randint(0, 4, (256,))

    def __len__(self):
        return 256

    def __getitem__(self, at):
        x = self.x[at]
        for _ in range(10):
            x = x * 1.0001
        return x, self.y[at]


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


model = nn.Sequential(nn.Linear(64, 256), Norm(256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(Rows(), batch_size=16, shuffle=True)
while True:
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()
"""


@dataclass(frozen=True)
class Pair:
    """Two environments and a project."""

    hotloop: tuple[str, ...]
    """The words before a command of hotloop's."""
    python: str
    """The program's."""
    folder: Path

    def __call__(self, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command of hotloop's in the project."""
        done = subprocess.run(
            [*self.hotloop, *words],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        missed = [line for line in (done.stdout + done.stderr).splitlines() if "No module named" in line]
        assert all("Failed to initialize NumPy" in line for line in missed), missed  # torch's own warning
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Hotloop here, torch there."""
    folder = tmp_path_factory.mktemp("apart")
    ours, theirs = hotloop_alone(folder / "tools", "py-spy"), torch_alone(folder / "program")
    return _pair(folder / "project", (str(ours), "-I", "-m", "hotloop"), str(theirs))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The environment of the tests."""
    return _pair(tmp_path_factory.mktemp("together"), (sys.executable, "-m", "hotloop"), sys.executable)


def _pair(folder: Path, hotloop: tuple[str, ...], python: str) -> Pair:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    return Pair(hotloop, python, folder)


def observed(pair: Pair) -> dict[str, Any]:
    """Return what `observe` says; its session is what later tests read."""
    pair("observe", "--steps", "20", "--json", "seen.json", pair.python, "train.py")
    found: dict[str, Any] = json.loads((pair.folder / "seen.json").read_text())
    return found


@pytest.fixture(scope="module")
def both(apart: Pair, together: Pair) -> tuple[dict[str, Any], dict[str, Any]]:
    """The observation apart, and that together."""
    return observed(apart), observed(together)


def test_each_environment_holds_what_it_says(apart: Pair) -> None:
    def missing(python: str, *names: str) -> list[str]:
        code = "import sys, importlib.util as u; print(*[n for n in sys.argv[1:] if u.find_spec(n) is None])"
        return subprocess.check_output([python, "-I", "-c", code, *names], text=True).split()

    ours = ["msgspec", "psutil", "numpy", "click", "libcst", "hotloop"]
    assert missing(apart.python, "torch", *ours) == ours
    assert missing(apart.hotloop[0], "torch", *ours) == ["torch"]


def test_observe_looks_with_every_instrument(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    found, wanted = both
    assert found["deep"].keys() == wanted["deep"].keys()
    assert [name for name, value in found["deep"].items() if value is None] == [
        name for name, value in wanted["deep"].items() if value is None
    ]
    assert {each["what"] for each in found["coverage"]} <= {each["what"] for each in wanted["coverage"]}
    assert any(line["line"] for line in found["deep"]["host"]["lines"])
    assert found["program"]["torch_version"] == wanted["program"]["torch_version"]


def test_diagnose_and_report_read_the_session(
    apart: Pair, together: Pair, both: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    told = []
    for pair in (apart, together):
        pair("diagnose", "--json", "found.json")
        told.append(json.loads((pair.folder / "found.json").read_text()))
        pair("report", "--html", "page.html")
        assert "train.py:" in (pair.folder / "page.html").read_text()
    lines = [{each["line"] for each in one["findings"] if each["path"]} for one in told]
    assert lines[0], "no finding has a line"
    assert lines[0] & lines[1]
    abstained = [{each["code"] for each in one["abstained"]} for one in told]
    assert abstained[0] == abstained[1]


def test_tune_switches_on_what_it_tries(apart: Pair) -> None:
    rows = ("dataset_in_memory", "fused_optimizer", "fused_layers")
    only = [word for row in rows for word in ("--only", row)]
    apart("tune", "--budget", "60s", *only, "--json", "tuned.json", apart.python, "train.py")
    result = json.loads((apart.folder / "tuned.json").read_text())
    reasons = {each["name"]: each["reason"] for each in result["refused"]}
    switched = {each["name"] for each in result["plan"]["steps"]} | set(reasons)
    assert switched >= set(rows)
    assert not any("failed" in reason or "did nothing" in reason for reason in reasons.values()), reasons


def with_plan(apart: Pair, name: str, program: str, step: PlanStep) -> Pair:
    """Write a program with a plan of one step."""
    folder = apart.folder.parent / name
    folder.mkdir()
    (folder / "train.py").write_text(program)
    plan = plan_for(folder / "train.py", step)
    fit = msgspec.structs.replace(plan.fit, command=(apart.python, "train.py"))
    promised = Ratio(step.ratio, step.low, step.high)
    plan = msgspec.structs.replace(plan, fit=fit, speedup=promised)
    (folder / "hotloop.toml").write_text(to_toml(plan))
    return Pair(apart.hotloop, apart.python, folder)


def test_run_has_the_plan_on(apart: Pair) -> None:
    planned = with_plan(apart, "run", ENDS, BF16)
    done = planned("run", "--plan", "hotloop.toml", planned.python, "train.py")
    assert "autocast True workers 0" in done.stdout


def test_patch_is_proven(apart: Pair) -> None:
    step = PlanStep(name="debug_apis_off", ratio=0.001, low=0.0009, high=0.0011)
    done = with_plan(apart, "proven", ANOMALOUS, step)("patch", "--prove", "--seconds", "60s", code=None)
    assert done.returncode in {ExitCode.DONE, ExitCode.UNDECIDED}, (
        done.stderr
    )  # a neighbour may hide its gain
    assert "+torch.autograd.set_detect_anomaly(False)\n" in done.stdout
    assert "learning                  the same" in done.stderr


def test_observe_looks_at_a_process_that_runs(apart: Pair) -> None:
    running = subprocess.Popen([apart.python, "train.py"], cwd=apart.folder, stderr=subprocess.DEVNULL)
    try:
        apart("observe", "--pid", str(running.pid), "--seconds", "6", "--json", "attached.json")
    finally:
        running.kill()
        running.wait()
    seen = json.loads((apart.folder / "attached.json").read_text())
    assert seen["deep"]["host"]["samples"]
