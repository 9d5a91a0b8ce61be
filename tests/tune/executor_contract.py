"""What every executor has to keep; a test class derives from `ExecutorContract` and says how one is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import pytest

from hotloop.model.optimization import Candidate
from hotloop.tune.executor import Executor, SetFailed, SetOrder, SetRecord


class ExecutorContract(ABC):
    """Derive, name the class `Test...`, and give an executor, a candidate that works and one that crashes."""

    works: Candidate
    crashes: Candidate

    @abstractmethod
    def make(self) -> Executor:
        """A new executor."""

    @pytest.fixture
    def executor(self):  # type: ignore[no-untyped-def]
        executor = self.make()
        yield executor
        executor.close()

    def test_every_round_has_a_positive_time_for_every_arm(self, executor: Executor) -> None:
        order = SetOrder(plans=((), (self.works,)), max_rounds=3, fresh=True)
        record = _measured(executor, order)
        assert len(record.rounds) == 3
        assert len(record.arms) == 2
        assert all(len(times) == 2 and min(times) > 0 for times in record.rounds)
        assert all(math.isfinite(value) for value in record.log_ratios(0, 1))

    def test_it_stops_when_told_that_this_is_enough(self, executor: Executor) -> None:
        seen: list[int] = []

        def enough(rounds: object) -> bool:
            seen.append(len(rounds))  # type: ignore[arg-type]
            return len(seen) == 2

        record = executor.run(SetOrder(plans=((), ()), max_rounds=6, fresh=True), enough)
        assert isinstance(record, SetRecord)
        assert len(record.rounds) == 2
        assert seen == [1, 2]

    def test_fresh_arms_take_the_same_steps_and_have_their_losses(self, executor: Executor) -> None:
        record = _measured(executor, SetOrder(plans=((), ()), max_rounds=2, fresh=True))
        first, second = (arm.losses for arm in record.arms)
        assert len(first) == len(second) > 0
        assert first == pytest.approx(second, rel=1e-3)
        assert all(arm.first_steps_s is not None for arm in record.arms)

    def test_an_incumbent_that_lived_on_has_no_start_to_show(self, executor: Executor) -> None:
        order = SetOrder(plans=((), (self.works,)), max_rounds=2, fresh=False)
        assert _measured(executor, order).arms[0].first_steps_s is not None
        again = _measured(executor, order)
        assert again.arms[0].first_steps_s is None
        assert again.arms[0].losses == ()
        assert again.arms[1].first_steps_s is not None

    def test_arms_say_what_took_effect(self, executor: Executor) -> None:
        record = _measured(executor, SetOrder(plans=((), (self.works,)), max_rounds=1, fresh=True))
        assert record.arms[0].effects == ()
        assert [(effect.name, effect.on) for effect in record.arms[1].effects] == [(self.works.name, True)]

    def test_a_failing_arm_is_named_and_the_executor_goes_on(self, executor: Executor) -> None:
        failed = executor.run(
            SetOrder(plans=((), (self.crashes,)), max_rounds=2, fresh=False), lambda _: False
        )
        assert isinstance(failed, SetFailed)
        assert failed.arm == 1
        assert failed.failure.message
        _measured(executor, SetOrder(plans=((), ()), max_rounds=1, fresh=True))

    def test_the_perturbed_original_has_as_many_losses_as_asked_for(self, executor: Executor) -> None:
        assert len(executor.perturbed(12)) == 12

    def test_two_arms_have_room(self, executor: Executor) -> None:
        assert executor.fits(2)

    def test_it_can_be_closed_twice(self, executor: Executor) -> None:
        executor.close()
        executor.close()


def _measured(executor: Executor, order: SetOrder) -> SetRecord:
    record = executor.run(order, lambda _: False)
    assert isinstance(record, SetRecord)
    return record
