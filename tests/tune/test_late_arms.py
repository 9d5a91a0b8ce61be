"""An arm that takes long to warm up is given up in time for a proof, and the others go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Failure, FailureKind
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import PlanSteps, SetOrder
from hotloop.tune.trials import arm_processes
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.arm_processes import ArmProcesses

from .settings import setting

QUICK, SLOW = (
    Candidate(name="fused_optimizer"),
    Candidate(name="compile", params={"mode": "default"}, one_off_s=45.0),
)
NEEDS_S = {"": 2.0, "fused_optimizer": 3.0, "compile": 70.0}


@dataclass
class _Clock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class _Arm:
    """Takes its time to warm up, as long as somebody waits for it."""

    plan: PlanSteps
    clock: _Clock
    waited_s: float = field(default=0.0)
    counter: None = None

    @property
    def needs_s(self) -> float:
        return NEEDS_S["".join(step.name for step in self.plan)]

    def wait_for_start(self, timeout_s: float) -> None:
        pass

    def advance(self, _steps: int, discard: int, timeout_s: float) -> float:
        self.waited_s = min(self.needs_s, timeout_s)
        self.clock.now += self.waited_s
        if self.waited_s < self.needs_s:
            late = Failure(kind=FailureKind.TIMEOUT, message="it did not answer")
            raise ArmFailed(cast("Arm", self), late)
        return 1.0


class _ArmProcesses(ArmProcesses):
    clock: _Clock

    def start(self, order: SetOrder, at: int) -> Arm:
        return cast("Arm", _Arm(order.plans[at], self.clock))


def _started(
    plans: tuple[PlanSteps, ...], keep_s: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[float, dict[int, FailureKind], list[Any]]:
    """Return the seconds that the start of a set took with 150 s left, what failed, and the arms."""
    clock = _Clock()
    monkeypatch.setattr(arm_processes, "time", clock)
    blocks = Blocks(num_steps=4, discard=1, warm_steps=3, max_rounds=None)
    crew = _ArmProcesses(setting(), blocks, lambda: 150.0 - clock.now)
    crew.clock = clock
    arms: list[Arm] = []
    failed: dict[int, FailureKind] = {}

    def guarded(at: int, work: Any) -> None:
        try:
            work(arms[at])
        except ArmFailed as failure:
            failed[at] = failure.failure.kind

    crew.start_all(SetOrder(plans=plans, max_rounds=8, keep_s=keep_s), arms, guarded)
    crew.close()
    return clock.now, failed, arms


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_SCRATCH", str(tmp_path))


@pytest.mark.parametrize(("keep_s", "most_s"), [(0.0, 85.0), (90.0, 35.0)])
def test_it_is_waited_for_half_of_what_is_not_kept(
    keep_s: float, most_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent_s, failed, arms = _started(((), (SLOW,), (QUICK,)), keep_s, monkeypatch)
    assert spent_s <= most_s
    assert failed == ({1: FailureKind.LATE} if keep_s else {})
    assert arms[2].waited_s == NEEDS_S["fused_optimizer"]


def test_a_plan_alone_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, failed, arms = _started(((), (SLOW,)), 90.0, monkeypatch)
    assert failed == {}
    assert arms[1].waited_s == NEEDS_S["compile"]


def test_a_plan_alone_leaves_time_for_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS_S, "compile", 1000.0)
    spent_s, failed, _ = _started(((), (SLOW,)), 90.0, monkeypatch)
    assert failed == {1: FailureKind.LATE}
    assert spent_s < 100
    spent_s, failed, _ = _started(((), (SLOW,)), 0.0, monkeypatch)
    assert spent_s >= 150  # of a proof it is all that there is
