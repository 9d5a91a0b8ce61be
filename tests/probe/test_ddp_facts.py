"""What the probe notes of DDP: which backward passes end with a reduction, and what is known when the group is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.observe.decode.processes import read_processes
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record import facts as facts_module
from hotloop.probe.record.facts import Facts

from .conftest import RunProgram

_PROGRAM = """
import contextlib, torch
import torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    for micro in range(4):
        with {around} if micro < 3 else contextlib.nullcontext():
            model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("around", "reduced"), [("model.no_sync()", 0.25), ("contextlib.nullcontext()", 1.0)]
)
def test_backward_passes_that_end_with_a_reduction_are_counted(
    run_probed: RunProgram, tmp_path: Path, around: str, reduced: float
) -> None:
    done = run_probed(_PROGRAM.format(around=around))
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert facts["reduced"] == pytest.approx(reduced)
    assert facts["exposed_communication_s"] is not None


def test_ranks_stay_ranks_when_the_program_has_left_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that ran to its end was no rank of anything, and had waited for nobody."""
    seen = Facts(Probe(ProbeConfig(folder=str(tmp_path))).sites)
    monkeypatch.setattr(facts_module, "rank_and_world", lambda: (1, 2))
    monkeypatch.setattr(seen, "_exposed_communication_s", lambda: 0.002)
    seen.settle()
    monkeypatch.setattr(facts_module, "rank_and_world", lambda: (None, 1))
    monkeypatch.setattr(seen, "_exposed_communication_s", lambda: None)
    seen.write(tmp_path, [], 10)
    (written,) = read_processes(tmp_path).values()
    assert (written["rank"], written["world_size"], written["exposed_communication_s"]) == (1, 2, 0.002)
