"""What the probe notes of DDP: which backward passes end with a reduction, and what is known when the group is gone."""

from __future__ import annotations

import weakref
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
    assert facts["exposed_communication"]


class _Ddp:
    """What is asked of a module that DDP wraps, iteration after iteration."""

    def __init__(self) -> None:
        self.measured: dict[str, int] = {}
        self.device_type, self.every = "cpu", 100

    def _set_ddp_runtime_logging_sample_rate(self, every: int) -> None:
        self.every = every

    def _get_ddp_logging_data(self) -> dict[str, int]:
        return self.measured


def test_each_iteration_that_ddp_measured_is_kept_but_the_first(tmp_path: Path) -> None:
    """A rank whose first batch came a second late made the average of 200 steps 87 ms, where each took 1."""
    seen, module = Facts(Probe(ProbeConfig(folder=str(tmp_path))).sites), _Ddp()
    seen.ddp_modules.append(weakref.ref(module))
    for iteration, spent_ms in enumerate([0, 1000, 3, 2, 2]):
        module.measured = {
            "iteration": iteration,
            "backward_comm_time": spent_ms * 1_000_000,
            "backward_compute_comm_overlap_time": 1_000_000,
            "backward_compute_time": 3_000_000,
        }
        seen.sample_communication()
    seen.settle()
    assert module.every == 8, "on a CPU more often than by itself"
    module.measured = {"iteration": 10, "backward_comm_time": 900_000_000}
    seen.write(tmp_path, [], 10)
    (written,) = read_processes(tmp_path).values()
    assert written["exposed_communication"] == pytest.approx([2 / 5, 1 / 4, 1 / 4])


def test_ranks_stay_ranks_when_the_program_has_left_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that ran to its end was no rank of anything."""
    seen = Facts(Probe(ProbeConfig(folder=str(tmp_path))).sites)
    monkeypatch.setattr(facts_module, "rank_and_world", lambda: (1, 2))
    seen.settle()
    monkeypatch.setattr(facts_module, "rank_and_world", lambda: (None, 1))
    seen.write(tmp_path, [], 10)
    (written,) = read_processes(tmp_path).values()
    assert (written["rank"], written["world_size"]) == (1, 2)
