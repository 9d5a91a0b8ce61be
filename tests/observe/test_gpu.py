"""Phases of a program on an accelerator; `make gpu` runs these."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Observe

torch: Any = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no accelerator"),
]

_AHEAD = """
import torch
from torch import nn
model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(12)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = torch.randn(4096, 4096, device="cuda")
for _ in range(4000):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
"""


def test_a_backward_takes_twice_its_forward_however_far_the_host_is_ahead(observe: Observe) -> None:
    run = observe(_AHEAD, "--no-deep")
    assert run.code == 0, run.err
    assert run.seen["clock"] == "device"
    phases = run.seen["phases"]
    assert 1.5 < phases["backward"]["median_s"] / phases["forward"]["median_s"] < 2.5
    assert sum(phase["share"] for phase in phases.values()) == pytest.approx(1)
