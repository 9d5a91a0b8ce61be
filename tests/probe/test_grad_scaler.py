"""Gradient scaling: losses are kept as the program computed them, and steps that are left out are steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotloop.observe.decode.processes import read_processes
from hotloop.observe.decode.spans import timelines
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.events import Kind

from .conftest import RunProgram

_PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(60):
    loss = model(torch.ones(8, 4)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if step in (5, 40):  # an overflow
        model.weight.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
"""


@pytest.mark.slow
def test_losses_are_unscaled_and_a_step_that_is_left_out_counts(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    folder = tmp_path / "probe"
    done = run_probed(_PROGRAM, ProbeConfig(folder=str(folder), losses=True))
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("losses-*.bin")
    np.testing.assert_allclose(
        np.fromfile(path).reshape(-1, 2)[:, 1], [float(line) for line in done.stdout.split()], rtol=1e-6
    )
    (facts,) = read_processes(folder).values()
    assert facts["skipped_steps"] == 2
    assert facts["steps"] == 60
    (timeline,) = timelines(folder, {}).values()
    assert len([span for span in timeline.spans if span.kind is Kind.OPTIMIZER]) == 60
    assert facts["notes"] == []
