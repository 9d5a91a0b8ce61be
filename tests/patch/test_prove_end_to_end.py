"""`hotloop patch --prove` as it is typed: the original and the patched program run in turns, both without our hooks."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from hotloop.model.errors import ExitCode
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import PlanStep
from hotloop.tune.plan.plan_file import to_toml

from ..cli.commands import hotloop
from ..tune.plans import plan_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TRAIN = """\
import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
wanted = torch.randn(16, 1)
for step in range(10_000_000):
    x = torch.randn(64, 16)
    loss = nn.functional.mse_loss(model(x), x @ wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NEVER = 1000.0
"""Times as fast: what no patch of one setting can bring."""


@pytest.mark.parametrize("promised", [1 / NEVER, NEVER], ids=["a promise that is kept", "one that is not"])
def test_a_patch_is_held_to_its_promise(promised: float, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    low, high = promised * 0.9, promised * 1.1
    plan = plan_for(script, PlanStep(name="debug_apis_off", ratio=promised, low=low, high=high))
    fit = msgspec.structs.replace(plan.fit, command=(sys.executable, "train.py"))
    plan = msgspec.structs.replace(plan, fit=fit, speedup=Ratio(promised, low, high))
    (tmp_path / "hotloop.toml").write_text(to_toml(plan))

    # A verdict needs three fresh pairs: each starts the program twice.
    done = hotloop("patch", "--prove", "--seconds", "90s", cwd=tmp_path, limit_s=500)

    told = done.stderr[-3000:]
    assert "the plan does not say where to edit; observing" in told
    assert (
        "-torch.autograd.set_detect_anomaly(True)\n+torch.autograd.set_detect_anomaly(False)\n" in done.stdout
    )
    assert "without hotloop's hooks" in told
    assert "learning                  the same" in told
    short = "The patch falls short of the plan; the edit of debug_apis_off is where it does."
    kept = promised != NEVER
    if done.returncode == ExitCode.UNDECIDED:  # beside a neighbour nothing may be told
        reasons = (
            "This does not prove that the patched program is faster",
            "other processes disturbed most pairs",
        )
        assert any(reason in told for reason in reasons), told
    else:
        assert (short in told) != kept
        assert done.returncode == (ExitCode.DONE if kept else ExitCode.GATE), told
    assert script.read_text() == TRAIN
