"""What the probe notes of the program's own switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.observe.decode.processes import read_processes

from .conftest import RunProgram

_PROGRAM = """
import contextlib, torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    with {around}:
        loss = model(torch.randn(8, 4)).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("around", "seen"),
    [
        ("torch.autograd.detect_anomaly()", True),
        ("torch.autograd.set_detect_anomaly(True)", True),
        ("contextlib.nullcontext()", False),
    ],
)
def test_anomaly_mode_around_the_backward_alone(
    run_probed: RunProgram, tmp_path: Path, around: str, seen: bool
) -> None:
    done = run_probed(_PROGRAM.format(around=around))
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert facts["anomaly_mode"] is seen
