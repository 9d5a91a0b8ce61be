"""Ctrl-C and SIGKILL at every point of a session: nothing finished is lost, nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from hotloop.model.tuning import TuneResult

from ..stats.simulated import Noise
from .sessions import Memory, Simulation, interrupts_when, names, noisy, reasons
from .simulated import Truth, candidates

TRUTH = Truth(factors={"a": 1.5, "b": 1.2, "c": 1.1})
TRIED = candidates("a", "null", "b", "c")
LONG = 1
"""A seed with which the interval is wide after three sets."""


class _At:
    """Raises at the n-th call."""

    def __init__(self, number: int, error: type[BaseException]) -> None:
        self.left = number
        self._error = error

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self._error


class Killed(BaseException):
    """The process is gone: nothing of ours may catch it."""


def _number_of_calls(run: Callable[[Callable[[], None]], object]) -> int:
    counter = _At(0, Killed)
    run(counter)
    return -counter.left


def _interrupted_at(number: int) -> tuple[TuneResult, Memory, Simulation]:
    journal = Memory()
    session = Simulation(TRUTH, journal=journal, before=_At(number, KeyboardInterrupt))
    return session.run(TRIED), journal, session


def test_control_c_at_every_point_ends_with_the_best_proven_plan() -> None:
    num_calls = _number_of_calls(lambda call: Simulation(TRUTH, before=call).run(TRIED))
    plans = []
    for number in range(1, num_calls + 1, 3):
        result, journal, session = _interrupted_at(number)
        assert result.interrupted
        assert session.executor.closed == 1
        assert sorted([*reasons(result), *names(result)]) == ["a", "b", "c", "null"]
        contests = [key for key in journal.finished() if key.startswith("compare|")]
        assert bool(result.trials) == bool(contests)
        sets = len([key for key in journal.finished() if key.startswith("confirm|")])
        assert bool(result.plan.steps) == (sets >= 3)
        assert bool(result.likely) == bool(contests and sets < 3)
        plans.append(names(result))
    assert [] in plans
    uninterrupted = Simulation(TRUTH).run(TRIED)
    assert names(uninterrupted) == ["a", "b", "c"]
    assert _number_of_calls(lambda call: Simulation(TRUTH, before=call).run(TRIED)) == num_calls


def test_control_c_before_anything_was_measured_leaves_the_floor_unknown() -> None:
    result, journal, _ = _interrupted_at(1)
    assert result.floor is None
    assert journal.finished() == ["decision|0"]
    assert reasons(result)["a"] == "not tried: interrupted"


def test_control_c_after_the_search_says_what_was_promising() -> None:
    confirming = Simulation(TRUTH)
    confirming.listen(interrupts_when("confirming"))
    result = confirming.run(TRIED)
    assert result.interrupted
    assert result.plan.steps == ()
    assert reasons(result)["a"] == "promising, but interrupted before it was confirmed"
    assert reasons(result)["null"].startswith("no difference")
    assert {step.name for step in result.likely[0].steps} == {"a", "b", "c"}


def test_control_c_in_a_later_set_leaves_what_was_proven_by_then() -> None:
    noise = Noise(pair_sd=0.03, block_sd=0.15, rho=0.5)
    whole = Simulation(TRUTH, noise, seed=LONG)
    whole.run(TRIED)
    assert len([text for text in whole.said if text.startswith("confirming")]) > 3
    session = Simulation(TRUTH, noise, seed=LONG)
    session.listen(interrupts_when("confirming the plan in fresh processes (4)"))
    result = session.run(TRIED)
    assert result.interrupted
    assert result.plan.speedup is not None
    assert result.plan.speedup.low > 1.2


def _resumable(journal: Memory, before: Callable[[], None] = lambda: None) -> Simulation:
    """What a run gives depends on what is finished, not on how often it was tried."""
    return Simulation(
        TRUTH, noisy(3), seed=3, journal=journal, turn=lambda: len(journal.finished()), before=before
    )


class _Counting(Memory):
    """A journal that says which work was finished, in order, and may be killed around a commit."""

    def __init__(self, kill: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.written: list[str] = []
        self.kill = kill

    def put(self, key: str, value: object) -> None:
        self.kill()
        super().put(key, value)
        self.written.append(key)
        self.kill()


def _killed_then_resumed(journal: _Counting, before: Callable[[], None]) -> TuneResult:
    try:
        return _resumable(journal, before).run(TRIED)
    except Killed:
        journal.kill = lambda: None
        return _resumable(journal).run(TRIED)


def _assert_the_same(result: TuneResult, whole: TuneResult, journal: _Counting) -> None:
    finished = [key for key in journal.written if not key.startswith("seconds|")]
    assert len(finished) == len(set(finished)), "finished work was done again"
    assert msgspec.json.encode(result) == msgspec.json.encode(whole)


def test_killed_in_any_run_a_session_goes_on_to_the_same_result() -> None:
    whole = _resumable(_Counting()).run(TRIED)
    num_calls = _number_of_calls(lambda call: _resumable(_Counting(), call).run(TRIED))
    assert num_calls > 100
    for number in range(1, num_calls + 1, 7):
        journal = _Counting()
        result = _killed_then_resumed(journal, _At(number, Killed))
        _assert_the_same(result, whole, journal)


def test_killed_around_any_commit_a_session_goes_on_to_the_same_result() -> None:
    whole = _resumable(_Counting()).run(TRIED)
    num_commits = _number_of_calls(lambda call: _resumable(_Counting(call)).run(TRIED))
    for number in range(1, num_commits + 1):
        journal = _Counting(_At(number, Killed))
        result = _killed_then_resumed(journal, lambda: None)
        _assert_the_same(result, whole, journal)


def test_a_finished_session_is_told_again_without_a_run() -> None:
    journal = _Counting()
    whole = _resumable(journal).run(TRIED)
    again = _resumable(journal)
    _assert_the_same(again.run(TRIED), whole, journal)
    assert again.executor.orders == []


def test_a_session_goes_on_although_something_is_not_to_be_tried_any_more() -> None:
    journal = Memory()
    Simulation(TRUTH, journal=journal, before=_At(3, KeyboardInterrupt)).run(TRIED)
    fewer = [one for one in TRIED if one.label != "a"]
    result = Simulation(TRUTH, journal=journal, free=True).run(fewer)
    assert names(result)
    assert "a" not in names(result)
