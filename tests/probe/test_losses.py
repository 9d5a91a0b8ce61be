"""Loss curves as the probe keeps them: one for every place that calls backward, without the scale of fp16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotloop.probe.process.config import ProbeConfig

from .conftest import RunProgram

_PROGRAM = """
import torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.0)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

def helper(loss):
    loss.backward()

for step in range(8):
    optimizer.zero_grad()
    helper((weight * 1.0).sum() + step)
    helper((weight * 10.0).sum() + step)
    scaler.scale((weight * 100.0).sum() + step).backward()
    if step % 4 == 3:
        torch.autograd.backward((weight * 1000.0).sum())
    optimizer.step()
"""


@pytest.fixture
def curves(run_probed: RunProgram, tmp_path: Path) -> dict[int, list[float]]:
    """The losses of each place."""
    done = run_probed(
        _PROGRAM, ProbeConfig(folder=str(tmp_path / "probe"), losses=True, seed=1, program_seeds=())
    )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "probe").glob("losses-*.bin")
    pairs = np.fromfile(path).reshape(-1, 2)
    return {int(site): pairs[pairs[:, 0] == site, 1].tolist() for site in np.unique(pairs[:, 0])}


def test_each_place_has_its_curve_and_scaled_losses_are_unscaled(curves: dict[int, list[float]]) -> None:
    steps = np.arange(8.0)
    assert curves[0] == (2 + steps).tolist()
    assert curves[1] == (20 + steps).tolist()
    assert curves[2] == (200 + steps).tolist()
    assert curves[3] == [2000.0, 2000.0]
