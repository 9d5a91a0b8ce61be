"""When steps are timed by phase: on a fake clock, and in a real loop whose every step is still seen to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.observe.decode.spans import Timeline, timelines
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.observe.steps.step_windows import windows
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record import burst_timing as module
from hotloop.probe.record.burst_timing import BURST, BurstTiming
from hotloop.probe.record.events import Kind
from hotloop.probe.record.recorder import Recorder

from .conftest import RunProgram

_MS = 1_000_000


class _Counts:
    num_backward = num_evaluated = 0
    allowed = True

    def may_be_lean(self) -> bool:
        return self.allowed


class _Loop:
    """Steps of a fixed length, as the boundary counts them."""

    def __init__(self, folder: Path, *, step_ms: float, lean: bool = True) -> None:
        self.recorder = Recorder(folder)
        self.recorder.own_thread()
        self.counts = _Counts()
        self.pace = BurstTiming(self.recorder, self.counts, lean=lean)
        self.steps = self.now = 0
        self.timed = 0
        self.step_ns = int(step_ms * _MS)

    def step(self, *, backwards: int = 1, evaluates: bool = False, new_epoch: bool = False) -> None:
        if evaluates or new_epoch:
            self.pace.wake()
        if not self.recorder.lean:
            self.timed += 1
            self.counts.num_backward += backwards
        self.counts.num_evaluated += evaluates
        self.steps += 1
        self.now += self.step_ns
        if self.steps >= self.pace.turn_at:
            self.pace.turn(self.steps, self.now)

    def share(self, num: int, **how: bool | int) -> float:
        """Return the share of the next steps that are timed."""
        before = self.timed
        for _ in range(num):
            self.step(**how)  # type: ignore[arg-type]
        return (self.timed - before) / num


def test_the_first_steps_are_all_timed(tmp_path: Path) -> None:
    loop = _Loop(tmp_path, step_ms=1)
    assert loop.share(2 * 1000) == 1
    assert loop.share(20_000) < 0.2


def test_timing_costs_no_more_than_its_share(tmp_path: Path) -> None:
    for step_ms in (1.0, 2.0, 4.0):
        loop = _Loop(tmp_path, step_ms=step_ms)
        loop.share(4_000)
        share = loop.share(40_000)
        assert share * module.PASS_NS / (step_ms * _MS) == pytest.approx(module.SHARE, rel=0.1)


def test_long_steps_are_all_timed(tmp_path: Path) -> None:
    assert _Loop(tmp_path, step_ms=21).share(5_000) == 1


def test_an_accumulation_of_short_passes_costs_what_its_passes_cost(tmp_path: Path) -> None:
    assert _Loop(tmp_path, step_ms=21).share(5_000, backwards=16) < 0.5


def test_steps_that_evaluate_are_all_timed(tmp_path: Path) -> None:
    assert _Loop(tmp_path, step_ms=1).share(5_000, evaluates=True) == 1


def test_an_epoch_interrupts_a_rest_for_one_step(tmp_path: Path) -> None:
    loop = _Loop(tmp_path, step_ms=1)
    loop.share(4_000)
    while not loop.recorder.lean:
        loop.step()
    before = loop.timed
    loop.step(new_epoch=True)
    assert loop.recorder.lean
    loop.step()
    assert loop.timed == before + 1


def test_a_loop_that_breaks_its_rests_is_timed_throughout(tmp_path: Path) -> None:
    loop = _Loop(tmp_path, step_ms=1)
    loop.share(4_000)
    while not loop.recorder.lean:
        loop.step()
    rest = loop.pace.turn_at - loop.steps
    num_interrupted = 0
    while loop.recorder.lean:
        loop.step(new_epoch=True)
        num_interrupted += 1
    assert num_interrupted < rest / 2
    assert loop.share(5_000) == 1


def test_who_wants_to_look_closer_sees_every_step(tmp_path: Path) -> None:
    loop = _Loop(tmp_path, step_ms=1)
    loop.share(4_000)
    loop.counts.allowed = False
    loop.pace.wake()
    assert loop.share(5_000) == 1


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    assert _Loop(tmp_path, step_ms=1, lean=False).share(5_000) == 1


def test_where_nothing_is_kept_nothing_is_timed() -> None:
    recorder = Recorder(None)
    pace = BurstTiming(recorder, _Counts(), lean=True)
    for steps in range(1, module.SETTLED + 1):
        pace.turn(steps, 0)
    assert recorder.lean
    pace.wake()
    assert recorder.lean, "there is nothing to wake for"


_LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from hotloop.probe.record import burst_timing as pace
pace.FIRST_STEPS, pace.FIRST_NS, pace.PASS_NS = 64, 0, 40_000_000
model, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(200, 4)), batch_size=2)
for epoch in range(6):
    for (batch,) in loader:
        optimizer.zero_grad()
        head(model(batch)).mean().backward()
        optimizer.step()
        if epoch % 2 and torch.rand(()) < 0.2:
            torch.save(model.state_dict(), "last.pt")
    with torch.no_grad():
        for (batch,) in loader:
            head(model(batch))
"""


@pytest.fixture
def seen(run_probed: RunProgram, tmp_path: Path) -> Timeline:
    run_probed(_LOOP).check_returncode()
    (timeline,) = timelines(tmp_path / "probe", {}).values()
    return timeline


def test_every_step_of_a_lean_loop_ends_and_every_evaluation_is_seen(seen: Timeline) -> None:
    anchor = find_anchor(seen.spans)
    assert anchor is not None
    steps = windows(seen, anchor)
    assert len(steps) == 6 * 100 - 1
    assert any(step.lean for step in steps)
    timed = [step for step in steps if step.regular]
    assert len(timed) >= BURST
    assert all(set(step.tokens) == {"data", "forward", "backward", "optimizer"} for step in timed)
    ends = [span.end_s for span in seen.spans]
    assert ends == sorted(ends), "steps that were only noted are recorded before what comes after them"
    assert sum(span.kind is Kind.SAVE for span in seen.spans) > 10
    assert sum(span.kind is Kind.EVALUATE for span in seen.spans) == 6 * 100 * 2
    assert sum(span.kind is Kind.ITERATOR for span in seen.spans) == 6 * 2


_LEAVES = """
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks as before
from hotloop.probe.record import burst_timing as pace
pace.FIRST_STEPS, pace.FIRST_NS, pace.PASS_NS = 64, 0, 40_000_000
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def places():
    return (torch.autograd.backward.__module__, "_compiled_call_impl" in model.__dict__, len(before))
seen = []
for _ in range(400):
    model.train()
    optimizer.zero_grad()
    model(torch.randn(2, 4)).mean().backward()
    optimizer.step()
    seen.append(places())
lean = seen.index(("torch.autograd", False, 0))
assert len(set(seen[lean:])) == 1, "training mode again and again is no news"
model.eval()
assert places() == seen[0], (places(), seen[0])
with torch.no_grad():
    model(torch.randn(2, 4))
model.train()
"""


def test_hook_points_leave_and_come_back(run_probed: RunProgram, tmp_path: Path) -> None:
    run_probed(_LEAVES).check_returncode()
    (timeline,) = timelines(tmp_path / "probe", {}).values()
    assert sum(span.kind is Kind.OPTIMIZER for span in timeline.spans) == 400
    assert [span.kind for span in timeline.spans if span.kind is not Kind.LOG][-1] is Kind.EVALUATE


@pytest.mark.slow
def test_nothing_is_timed_where_nothing_is_kept(run_probed: RunProgram, tmp_path: Path) -> None:
    program = _LEAVES.replace("assert places() == seen[0]", "assert places() == seen[-1]")
    config = ProbeConfig(folder=str(tmp_path / "probe"), record=False)
    run_probed(program, config).check_returncode()
    assert not list((tmp_path / "probe").glob("events-*.bin"))
