"""What every executor has to keep; a test class derives from `ExecutorContract` and says how one is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection

import pytest

from hotloop.model.optimization import Candidate
from hotloop.tune.executor import Executor, Rounds, SetFailed, SetOrder, SetRecord


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
        order = SetOrder(plans=((), (self.works,)), max_rounds=3)
        record = _measured(executor, order)
        assert len(record.rounds) == 3
        assert len(record.arms) == 2
        assert all(len(times) == 2 and min(times) > 0 for times in record.rounds)
        assert all(math.isfinite(value) for value in record.log_ratios((0,), 1))

    def test_it_stops_when_told_that_this_is_enough(self, executor: Executor) -> None:
        seen: list[int] = []

        def steer(rounds: Rounds) -> Collection[int]:
            seen.append(len(rounds))
            return range(2) if len(seen) < 2 else ()

        record = executor.run(SetOrder(plans=((), ()), max_rounds=6), steer)
        assert isinstance(record, SetRecord)
        assert len(record.rounds) == 2
        assert seen == [1, 2]

    def test_an_arm_that_is_not_wanted_any_more_ends_and_the_others_go_on(self, executor: Executor) -> None:
        order = SetOrder(plans=((), (self.works,), ()), max_rounds=4)
        record = executor.run(order, lambda rounds: range(3) if len(rounds) < 2 else (0, 2))
        assert isinstance(record, SetRecord)
        assert [math.isnan(times[1]) for times in record.rounds] == [False, False, True, True]
        assert len(record.log_ratios((0,), 1)) == 2
        assert len(record.log_ratios((0,), 2)) == 4

    def test_arms_take_the_same_steps_and_have_their_losses(self, executor: Executor) -> None:
        record = _measured(executor, SetOrder(plans=((), ()), max_rounds=3))
        one, other = record.arm(0), record.arm(1)
        assert one is not None
        assert other is not None
        assert len(one.losses) == len(other.losses) > 0
        assert one.losses == pytest.approx(other.losses, rel=1e-3)
        assert one.first_steps_s is not None
        assert record.start_s > 0

    def test_a_perturbed_arm_departs_a_little(self, executor: Executor) -> None:
        record = _measured(executor, SetOrder(plans=((), ()), max_rounds=3, perturbed=(1,)))
        plain, moved = record.arm(0), record.arm(1)
        assert plain is not None
        assert moved is not None
        assert moved.losses != plain.losses
        assert moved.losses == pytest.approx(plain.losses, rel=0.05)

    def test_arms_say_what_took_effect(self, executor: Executor) -> None:
        record = _measured(executor, SetOrder(plans=((), (self.works,)), max_rounds=3))
        before, after = record.arm(0), record.arm(1)
        assert before is not None
        assert after is not None
        assert before.effects == ()
        assert [(effect.name, effect.on) for effect in after.effects] == [(self.works.name, True)]

    def test_an_arm_that_fails_is_named_and_the_others_go_on(self, executor: Executor) -> None:
        order = SetOrder(plans=((), (self.crashes,), (self.works,)), max_rounds=3)
        record = _measured(executor, order)
        failure = record.failure(1)
        assert failure is not None
        assert failure.message
        assert record.arm(1) is None
        assert len(record.log_ratios((0,), 2)) == 3

    def test_an_original_that_fails_fails_the_set(self, executor: Executor) -> None:
        order = SetOrder(plans=((self.crashes,), ()), max_rounds=3)
        assert isinstance(executor.run(order, lambda _: range(2)), SetFailed)
        _measured(executor, SetOrder(plans=((), ()), max_rounds=3))

    def test_two_arms_have_room(self, executor: Executor) -> None:
        assert executor.fits(2)

    def test_it_can_be_closed_twice(self, executor: Executor) -> None:
        executor.close()
        executor.close()


def _measured(executor: Executor, order: SetOrder) -> SetRecord:
    record = executor.run(order, lambda _: range(len(order.plans)))
    assert isinstance(record, SetRecord)
    return record
