"""What a session says of candidates whose truth is known."""

from __future__ import annotations

import math
import re
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.optimization import Candidate, Numerics, Refusal
from hotloop.model.tuning import FailureKind, Measured
from hotloop.tune.confirm.factors import ARMS, SWITCHED
from hotloop.tune.confirm.set_pairs import MAX_SETS
from hotloop.tune.search.arm_comparison import METHOD as ARM_METHOD
from hotloop.tune.search.arm_verdict import clearly_slower
from hotloop.tune.search.knob_screen import METHOD
from hotloop.tune.sets.set_runner import STEADY_ROUNDS, while_time
from hotloop.tune.verdict.reasons import ACCEPTED

from ..stats.simulated import Noise
from .sessions import DEFAULT_BUDGET_S, Memory, Simulation, interrupts_when, names, noisy, reasons
from .simulated import STARTUP_S, STEP_S, Disturbance, Truth, candidates

BF16 = Candidate(name="bf16", numerics=Numerics.TOLERANCE)
WAITING = "openmp_wait_policy"


def test_what_helps_is_in_the_plan_and_the_factors_multiply_to_the_total() -> None:
    truth = Truth(factors={"a": 1.5, "b": 1.2, "slow": 0.7})
    for seed in range(5):
        result = Simulation(truth, noisy(seed), seed=seed).run(candidates("a", "null", "slow", "b"))
        speedup = result.plan.speedup
        assert set(names(result)) == {"a", "b"}
        assert speedup is not None
        assert math.prod(step.ratio for step in result.plan.steps) == pytest.approx(speedup.ratio, rel=1e-9)
        assert speedup.low <= speedup.ratio <= speedup.high
        for step in result.plan.steps:
            assert 1 < step.low <= step.ratio <= step.high


def test_the_quoted_number_is_of_fresh_processes_that_ran_exactly_the_plan() -> None:
    session = Simulation(Truth(factors={"a": 1.5, "b": 1.2}))
    result = session.run(candidates("a", "b", "null"))
    assert set(names(result)) == {"a", "b"}
    proof = [
        order for order in session.executor.orders if [one.name for one in order.plans[-1]] == names(result)
    ]
    assert len(proof) >= 2, "comparing something beside the plan is a set of its proof, too"
    assert all(order.plans[0] == () for order in proof)


def test_a_slower_one_is_ended_early_and_the_others_go_on() -> None:
    session = Simulation(Truth(factors={"slow": 0.5, "a": 1.3}))
    result = session.run(candidates("slow", "a"))
    assert names(result) == ["a"]
    assert reasons(result)["slow"].startswith("slower: 0.5")


def test_an_original_that_failed_does_not_end_the_session() -> None:
    """A second original, with rounding noise, ran out of memory among six arms of a ResNet."""
    gone = math.nan
    rounds = [(1.0, 1.0, 1.5), (1.0, gone, 1.4), (1.1, gone, 1.6), (1.0, gone, 1.5)]
    assert clearly_slower(rounds, [0, 1], 2)
    assert not clearly_slower([(one, gone, one) for one, _, _ in rounds], [0, 1], 2)


def test_an_arm_does_not_make_up_for_what_switching_overstates() -> None:
    """Switched in one process two knobs show 2.16x of their 1.8x; their neighbour in arms keeps its 1.2x."""
    truth = Truth(factors={"knob": 1.5, "other": 1.2, "arm": 1.2}, switched={"knob": 1.2})
    for seed in range(3):
        session = Simulation(truth, noisy(seed), seed=seed, switchable=lambda one: one.name != "arm")
        result = session.run(candidates("knob", "other", "arm"))
        ratios = {step.name: step.ratio for step in result.plan.steps}
        assert ratios["arm"] == pytest.approx(1.2, rel=0.03)
        assert ratios["knob"] * ratios["other"] == pytest.approx(1.8, rel=0.03)


@pytest.mark.parametrize("prior", [1.9, 1.5])
@pytest.mark.parametrize(
    ("kept", "wanted", "budget_s"),
    [(1.8, "kept", DEFAULT_BUDGET_S), (1.1, "workers", DEFAULT_BUDGET_S), (1.8, "kept", 90.0)],
)
def test_a_knob_that_a_mover_keeps_out_is_tried_all_the_same(
    kept: float, wanted: str, prior: float, budget_s: float
) -> None:
    truth = Truth(factors={"workers": 1.4, "kept": kept, "fused": 1.1})
    conflicts = {"workers": frozenset({"kept"}), "kept": frozenset({"workers"})}
    tried = [
        Candidate(name="workers", prior=1.8),
        Candidate(name="kept", prior=prior),
        Candidate(name="fused", prior=1.05),
    ]
    session = Simulation(
        truth, conflicts=conflicts, switchable=lambda one: one.name != "workers", budget_s=budget_s
    )
    result = session.run(tried)
    assert wanted in names(result)
    assert result.plan.speedup is not None
    if budget_s == DEFAULT_BUDGET_S:
        assert set(names(result)) == {wanted, "fused"}
        assert result.plan.speedup.ratio == pytest.approx(1.1 * max(1.4, kept), rel=0.03)


@pytest.mark.parametrize("num_others", [1, 3])
def test_what_takes_long_to_begin_holds_up_none_of_the_others(num_others: int) -> None:
    others = [f"other {number}" for number in range(num_others)]
    truth = Truth(factors=dict.fromkeys(others, 1.2), one_off_s={"long": 200.0})
    tried = [Candidate(name="long", prior=1.5, one_off_s=200.0), *candidates(*others)]
    result = Simulation(truth, budget_s=240.0).run(tried)
    assert set(names(result)) == set(others)
    assert reasons(result)["long"].startswith("not tried: ")


def test_what_is_expected_to_bring_most_does_not_give_way_to_many_that_bring_little() -> None:
    """On a small GPT three arms of 1.01 took the time that compilation (1.28) would have needed."""
    little = [Candidate(name=f"little {number}", prior=1.02) for number in range(3)]
    long = Candidate(name="long", prior=1.25, one_off_s=45.0)
    truth = Truth(factors={"long": 1.28, "knob": 1.1}, one_off_s={"long": 15.0})
    tried = [Candidate(name="knob", prior=1.1), *little, long]
    result = Simulation(truth, budget_s=220.0, switchable=lambda one: one.name == "knob").run(tried)
    assert set(names(result)) == {"knob", "long"}


def test_what_gains_much_is_proven_before_what_promises_little_is_tried() -> None:
    truth = Truth(factors={"workers": 1.5, "little 0": 1.1})
    tried = [
        Candidate(name="workers", prior=1.4),
        *(Candidate(name=f"little {at}", prior=1.02) for at in range(4)),
    ]
    tried.append(Candidate(name="knob", prior=1.02))
    session = Simulation(truth, switchable=lambda one: one.name == "knob")
    result = session.run(tried)
    assert set(names(result)) == {"workers", "little 0"}
    first = next(at for at, text in enumerate(session.said) if text.startswith("confirming"))
    assert any("little" in text for text in session.said[first:])
    assert not any("little" in text for text in session.said[:first])
    interrupted = Simulation(truth, switchable=lambda one: one.name == "knob")
    interrupted.listen(interrupts_when("compare little"))
    assert names(interrupted.run(tried)) == ["workers"]


@pytest.mark.parametrize("gain", [1.08, 1.0])
def test_time_that_is_left_goes_to_knobs_that_could_not_be_told_from_nothing(gain: float) -> None:
    """Of 300 s a graph network's session left 123 unspent."""
    truth, wild = Truth(factors={"fused": gain}), Noise(pair_sd=0.005, block_sd=0.5, rho=0.3)
    nothing = [Candidate(name=f"nothing {number}", prior=1.02) for number in range(5)]
    again = found = 0
    for seed in range(4):
        session = Simulation(truth, wild, seed=seed, switchable=lambda _: True, budget_s=400.0)
        result = session.run([Candidate(name="fused", prior=1.02), *nothing])
        again += len([trial for trial in result.trials if trial.candidate.name == "fused"]) > 1
        found += "fused" in {*names(result), *(step.name for one in result.likely for step in one.steps)}
        assert not any(name.startswith("nothing") for name in names(result))
    assert again
    assert bool(found) == (gain > 1)


def test_a_proof_that_few_sets_would_settle_gets_the_time_that_nothing_else_needs() -> None:
    truth, apart = Truth(factors={"fused": 1.06}), Noise(pair_sd=0.04, block_sd=0.05, rho=0.3)
    for seed in (2, 3, 5):
        result = Simulation(truth, apart, seed=seed).run([Candidate(name="fused", prior=1.1)])
        assert names(result) == ["fused"] or f"over {MAX_SETS} pairs; slower" in result.likely[0].reason


@pytest.mark.parametrize("gain", [1.06, 1.0])
def test_time_that_is_left_goes_to_arms_that_could_not_be_told_from_nothing(gain: float) -> None:
    truth, apart = Truth(factors={"fused": gain}), Noise(pair_sd=0.04, block_sd=0.05, rho=0.3)
    proven = 0
    for seed in (1, 6, 11):
        session = Simulation(truth, apart, seed=seed)
        result = session.run([Candidate(name="fused", prior=1.1)])
        proven += bool(result.plan.steps)
    assert bool(proven) == (gain > 1)


def test_a_session_with_new_time_switches_again_what_there_was_no_time_for() -> None:
    journal, wild = Memory(), Noise(pair_sd=0.005, block_sd=0.5, rho=0.3)
    tried = [Candidate(name=f"nothing {number}", prior=1.02) for number in range(3)]
    first = Simulation(Truth(), wild, switchable=lambda _: True, budget_s=100.0, journal=journal)
    assert not first.run(tried).plan.steps
    assert first.executor.switched
    later = Simulation(Truth(), wild, switchable=lambda _: True, budget_s=300.0, journal=journal, free=True)
    later.run(tried)
    assert later.executor.switched


def test_a_session_with_new_time_tries_what_there_was_no_time_for() -> None:
    journal, tried = Memory(), [Candidate(name=f"arm {number}", prior=1.1) for number in range(12)]
    truth = Truth(factors={"arm 11": 1.4})
    first = Simulation(truth, budget_s=110.0, journal=journal).run(tried)
    assert "too little time was left" in reasons(first)["arm 11"]
    result = Simulation(truth, budget_s=400.0, journal=journal, free=True).run(tried)
    assert names(result) == ["arm 11"]


def test_of_two_that_exclude_one_another_fresh_processes_tell_the_faster_one() -> None:
    """Samples kept in memory were slower while they were switched than they are, and gave way to batched fetches."""
    truth = Truth(factors={"kept": 2.6, "batched": 2.3}, switched={"kept": 0.87})
    conflicts = {"kept": frozenset({"batched"}), "batched": frozenset({"kept"})}
    tried = candidates("kept", "batched")
    session = Simulation(truth, conflicts=conflicts, switchable=lambda _: True)
    assert names(session.run(tried)) == ["kept"]
    lost = Simulation(
        Truth(factors={"kept": 1.5, "batched": 2.3}), conflicts=conflicts, switchable=lambda _: True
    )
    assert names(lost.run(tried)) == ["batched"]


def test_what_was_expected_of_a_beginning_gives_way_to_what_it_took() -> None:
    truth = Truth(factors={"kept": 1.5, "arm": 1.2})
    tried = [Candidate(name="kept", prior=1.5, one_off_s=90.0), *candidates("arm")]
    result = Simulation(truth, budget_s=200.0, switchable=lambda one: one.name == "kept").run(tried)
    assert set(names(result)) == {"kept", "arm"}


@pytest.mark.parametrize("budget_s", [80.0, 120.0])
@pytest.mark.parametrize("num_others", [0, 12])
def test_a_short_budget_measures_before_it_proves(budget_s: float, num_others: int) -> None:
    """Of more knobs than there is time for the most promising are switched: nothing unmeasured is confirmed."""
    truth = Truth(factors={"hoped": 0.93, "next": 1.6})
    tried = [
        Candidate(name="hoped", prior=1.3),
        Candidate(name="next", prior=1.2),
        *(Candidate(name=f"other {number}", prior=1.0) for number in range(num_others)),
    ]
    for seed in range(3):
        session = Simulation(truth, noisy(seed), seed=seed, budget_s=budget_s, switchable=lambda _: True)
        result = session.run(tried)
        found = {*names(result), *(step.name for one in result.likely for step in one.steps)}
        assert "next" in found
        assert "hoped" not in found
        assert session.executor.switched[0].knobs[:2] == tuple(tried[:2])
        confirmed = [order.plans[-1] for order in session.executor.orders if order.plans[-1]]
        assert confirmed
        assert all("hoped" not in {step.name for step in plan} for plan in confirmed)


@pytest.mark.parametrize("with_workers", [False, True])
def test_what_acts_from_the_start_of_a_process_only_gets_one_of_its_own(with_workers: bool) -> None:
    truth = Truth(factors={"workers": 1.3, "kept": 1.5, "fused": 1.1}, from_start=frozenset({"kept"}))
    tried = [
        *([Candidate(name="workers", prior=1.8)] if with_workers else []),
        Candidate(name="kept", prior=1.4),
        Candidate(name="fused", prior=1.05),
    ]
    result = Simulation(truth, switchable=lambda one: one.name != "workers").run(tried)
    assert set(names(result)) == {one.name for one in tried}
    assert result.plan.speedup is not None
    assert result.plan.speedup.ratio == pytest.approx(1.5 * 1.1 * (1.3 if with_workers else 1), rel=0.03)
    for step in result.plan.steps:
        assert step.ratio == pytest.approx(truth.factors[step.name], rel=0.03)
        assert step.proven


def test_a_knob_that_a_short_program_left_no_time_to_switch_gets_a_process_of_its_own() -> None:
    truth = Truth(factors={"first": 1.3, "last": 1.2}, ends_after_steps=60)
    simulation = Simulation(truth, max_rounds=8, switchable=lambda _: True)
    result = simulation.run(candidates("first", "second", "third", "last"))
    methods = {trial.candidate.name: trial.method for trial in result.trials}
    assert (methods["first"], methods["last"]) == (METHOD, ARM_METHOD)
    assert set(methods) == {"first", "second", "third", "last"}
    assert set(names(result)) == {"first", "last"}


@pytest.mark.parametrize("others_cost", [1.5, None])
def test_what_was_measured_beside_others_may_cost_time_without_them(others_cost: float | None) -> None:
    truth = Truth(factors={"sleeps": 1.5, "arm": 1.4}, others_cost=others_cost)
    session = Simulation(truth, heed_neighbours=frozenset({"sleeps"}), observed_busy=others_cost is not None)
    result = session.run(candidates("sleeps", "arm"))
    cautions = {step.name: step.caution for step in result.plan.steps}
    assert set(cautions) == {"sleeps", "arm"}
    assert ("on a quiet machine it may cost time" in cautions["sleeps"]) == (others_cost is not None)
    assert not cautions["arm"]


def test_what_gains_what_others_take_is_not_proven_where_they_came_later() -> None:
    """One thread was "proven" 14 times as fast beside tests of ours, and 1.1 alone; the rest can be proven there."""
    truth = Truth(factors={"sleeps": 8.0, "arm": 1.4}, others_cost=1.5)
    result = Simulation(truth, heed_neighbours=frozenset({"sleeps"})).run(candidates("sleeps", "arm"))
    assert names(result) == ["arm"]
    assert result.plan.steps[0].ratio == pytest.approx(1.4, rel=0.05)
    assert "sleeps gains what they take" in reasons(result)["sleeps"]
    assert not result.likely


def test_it_is_measured_again_once_they_have_left() -> None:
    truth = Truth(factors={"sleeps": 1.5, "arm": 1.4}, others_cost=1.5, others_sets=5)
    session = Simulation(truth, heed_neighbours=frozenset({"sleeps"}), budget_s=1200.0)
    result = session.run(candidates("sleeps", "arm"))
    assert set(names(result)) == {"sleeps", "arm"}
    assert not any(step.caution for step in result.plan.steps)


def test_a_session_that_goes_on_when_they_have_left_measures_it_again() -> None:
    journal = Memory()
    heed = frozenset({"sleeps"})
    beside = Truth(factors={"sleeps": 1.5}, others_cost=1.5)
    first = Simulation(beside, heed_neighbours=heed, journal=journal).run(candidates("sleeps"))
    assert not names(first)
    alone = Truth(factors={"sleeps": 1.5})
    again = Simulation(alone, heed_neighbours=heed, journal=journal, free=True).run(candidates("sleeps"))
    assert names(again) == ["sleeps"]
    assert not again.plan.steps[0].caution


@pytest.mark.parametrize(
    ("others_cost", "observed_s", "holds"), [(1.8, 1, True), (9, 1, False), (9, 9, True)]
)
def test_a_program_that_others_made_another_proves_nothing(
    others_cost: float, observed_s: float, holds: bool
) -> None:
    """Threads that wait at barriers for one without a core: all that waits less often looks many times as fast."""
    truth = Truth(factors={"a": 1.4}, others_cost=others_cost)
    result = Simulation(truth, observed_s=observed_s * STEP_S).run(candidates("a", "null"))
    assert names(result) == (["a"] if holds else [])
    assert not result.likely
    if not holds:
        assert "the machine was disturbed: the original program took" in reasons(result)["a"]
        assert "tune on a quiet machine" in reasons(result)["a"]


@pytest.mark.parametrize("changes", [True, False])
def test_a_machine_that_changes_its_speed_is_told(changes: bool) -> None:
    result = Simulation(Truth(factors={"arm": 1.4}), disturbance=_Sometimes(changes)).run(candidates("arm"))
    assert names(result) == ["arm"]
    said = "your program as it is took 100 ms to 150 ms a step from set to set: what is gained may be another"
    assert (said in result.confirmation) == changes


class _Sometimes(Disturbance):
    """Half as slow again, from the seventh process on."""

    def __init__(self, changes: bool) -> None:
        self._changes = changes
        self._num = 0

    def process(self) -> float:
        self._num += 1
        return 1.0

    def turns(self, num: int, steps: int) -> list[float]:
        return [1.5 if self._changes and self._num > 6 else 1.0] * num

    def hold(self, steps: int) -> list[float]:
        return [1.0] * steps


def test_a_session_whose_candidates_are_others_by_now_comes_to_its_end() -> None:
    """Another version expects other gains; the sets of a proof that it kept are of the same names."""
    journal, truth = Memory(), Truth(factors={"a": 1.4})
    Simulation(truth, journal=journal, switchable=lambda _: True).run(candidates("a"))
    again = Simulation(truth, journal=journal, switchable=lambda _: True)
    assert names(again.run([Candidate(name="a", prior=1.01)])) in ([], ["a"])


def test_factors_say_how_they_were_obtained() -> None:
    truth = Truth(factors={"knob": 1.3, "other": 1.2, "arm": 1.4})
    result = Simulation(truth, switchable=lambda one: one.name != "arm").run(
        candidates("knob", "other", "arm")
    )
    methods = {step.name: step.method for step in result.plan.steps}
    assert methods == {"knob": SWITCHED, "other": SWITCHED, "arm": ARMS}
    for step in result.plan.steps:
        assert step.proven
        assert step.ratio == pytest.approx(truth.factors[step.name], rel=0.02)


def test_a_short_program_can_be_tuned_with_three_blocks() -> None:
    result = Simulation(Truth(factors={"a": 1.5}), max_rounds=3).run(candidates("a", "null"))
    assert names(result) == ["a"]


def test_nothing_helps_is_a_result() -> None:
    result = Simulation(Truth()).run(candidates("null"))
    assert result.plan.steps == ()
    assert result.plan.speedup is None
    assert result.plan.parity is None
    assert not result.interrupted
    assert reasons(result)["null"].startswith("no difference: 1.00")


def test_without_candidates_there_is_no_trial() -> None:
    refused = [Refusal("pinned_memory", "does not apply: there is no accelerator")]
    result = Simulation(Truth()).run([], refused)
    assert result.trials == ()
    assert result.refused == tuple(refused)


def test_what_did_not_take_effect_is_refused_whatever_its_ratio() -> None:
    truth = Truth(factors={"a": 1.5}, ineffective=frozenset({"a"}))
    result = Simulation(truth).run(candidates("a"))
    assert result.plan.steps == ()
    assert reasons(result)["a"] == "no effect: a was looked at"


@pytest.mark.parametrize(
    ("budget_s", "switchable"),
    [(DEFAULT_BUDGET_S, False), (DEFAULT_BUDGET_S, True)],
)
def test_what_did_not_take_effect_gets_no_share_of_the_whole(budget_s: float, switchable: bool) -> None:
    truth = Truth(factors={"good": 1.5}, ineffective=frozenset({"idle", "idle too"}))
    hoped = [Candidate(name=name, prior=1.3) for name in ("idle", "good", "idle too")]
    result = Simulation(truth, budget_s=budget_s, switchable=lambda _: switchable).run(hoped)
    assert names(result) == ["good"]
    assert result.plan.speedup is not None
    assert result.plan.speedup.ratio == pytest.approx(1.5, rel=0.02)
    assert reasons(result)["idle"] == "no effect: idle was looked at"


class TestTogether:
    def test_what_helps_alone_but_not_beside_another_is_left_out(self) -> None:
        truth = Truth(factors={"a": 1.5, "b": 1.4}, together={frozenset({"a", "b"}): 1 / 1.4})
        result = Simulation(truth).run(candidates("a", "b"))
        assert names(result)[0] == "a"
        assert "b" in reasons(result) or not result.plan.steps[1].proven

    def test_what_hurts_beside_another_is_taken_out_when_that_shows(self) -> None:
        truth = Truth(factors={"a": 1.5, "b": 1.2}, together={frozenset({"a", "b"}): 0.5})
        result = Simulation(truth).run(candidates("a", "b"))
        assert names(result) == ["a"]
        assert reasons(result)["b"].startswith("slower: ")

    def test_knobs_that_help_only_together_are_found_where_that_is_known_to_happen(self) -> None:
        truth = Truth(factors={"bf16": 1.5}, together={frozenset({"layout", "bf16"}): 1.3})
        session = Simulation(truth, switchable=lambda _: True, interactions={"layout": frozenset({"bf16"})})
        result = session.run([*candidates("layout"), BF16, *candidates("null")])
        assert set(names(result)) == {"bf16", "layout"}
        assert result.plan.speedup is not None
        assert result.plan.speedup.ratio == pytest.approx(1.95, rel=0.02)

    def test_a_knob_that_hinders_what_needs_a_process_is_left_out_for_it(self) -> None:
        truth = Truth(factors={"bf16": 1.3, "compile": 1.5}, together={frozenset({"bf16", "compile"}): 0.7})
        session = Simulation(
            truth,
            switchable=lambda one: one.name == "bf16",
            interactions={"compile": frozenset({"bf16"})},
        )
        result = session.run([BF16, *candidates("compile")])
        assert names(result) == ["compile"]

    def test_the_better_parameters_take_the_place_of_the_good_ones(self) -> None:
        truth = Truth(factors={"workers(n=1)": 1.3, "workers(n=2)": 1.8})
        tried = [Candidate(name="workers", params={"n": number}) for number in (1, 2)]
        result = Simulation(truth).run(tried)
        assert [step.params for step in result.plan.steps] == [{"n": 2}]
        assert reasons(result)["workers(n=1)"] == "replaced by workers(n=2), which was faster"

    def test_of_two_that_exclude_one_another_the_faster_one_stays(self) -> None:
        truth = Truth(factors={"a": 1.2, "b": 1.6})
        conflicts = {"a": frozenset({"b"}), "b": frozenset({"a"})}
        session = Simulation(truth, conflicts=conflicts)
        result = session.run(candidates("a", "b"))
        assert names(result) == ["b"]
        assert not any(
            {"a", "b"} <= {step.name for step in plan}
            for order in session.executor.orders
            for plan in order.plans
        )

    def test_a_gain_that_the_observation_rules_out_is_called_unexplained(self) -> None:
        tried = [Candidate(name="a", max_gain=1.2), Candidate(name="hopeless", max_gain=1.004)]
        result = Simulation(Truth(factors={"a": 1.5})).run(tried)
        assert "more than the 1.20x that the observation allows" in result.plan.steps[0].evidence
        assert reasons(result)["hopeless"] == "could gain 1.004x here at most, too little to be measured"


class TestParity:
    def test_one_that_learns_otherwise_is_refused(self) -> None:
        truth = Truth(factors={"a": 1.5, "b": 1.2}, departing={frozenset({"a"}): 0.1})
        result = Simulation(truth).run(candidates("a", "b"))
        assert names(result) == ["b"]
        assert reasons(result)["a"].startswith("parity: ")

    def test_what_cannot_touch_a_number_is_not_refused_for_what_it_is_beside(self) -> None:
        malloc = Candidate(name="malloc", prior=1.1, touches_numbers=False)
        truth = Truth(factors={"fused": 1.12, "malloc": 1.2}, departing={frozenset({"fused"}): 0.5})
        result = Simulation(truth, switchable=lambda one: one != malloc).run([*candidates("fused"), malloc])
        assert [trial.decision for trial in result.trials if trial.candidate == malloc] == [ACCEPTED]
        assert reasons(result)["fused"].startswith("parity")
        assert names(result) == ["malloc"]

    def test_one_that_diverges_is_refused(self) -> None:
        truth = Truth(factors={"a": 1.5}, departing={frozenset({"a"}): math.nan})
        result = Simulation(truth).run(candidates("a"))
        assert reasons(result)["a"] == "parity: loss is nan at step 0, the original's is not"

    def test_one_that_breaks_only_in_combination_is_refused(self) -> None:
        truth = Truth(factors={"a": 1.5, "b": 1.2}, departing={frozenset({"a", "b"}): 0.1})
        result = Simulation(truth).run(candidates("a", "b"))
        assert names(result) == ["a"]
        assert reasons(result)["b"].startswith("parity when confirmed")

    def test_reduced_precision_is_held_to_the_floor_of_reduced_precision(self) -> None:
        result = Simulation(Truth(factors={"bf16": 1.5})).run([BF16])
        assert names(result) == ["bf16"]
        assert result.plan.parity is not None
        assert result.plan.parity.passed
        runs = re.search(r"floor from (\d+) (?:more )?runs of the original", result.plan.parity.evidence)
        assert runs is not None  # every original of every set is one more
        assert int(runs[1]) >= 2


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("switchable", [True, False])
def test_what_cannot_be_told_to_learn_the_same_keeps_nothing_else_from_being_proven(
    switchable: bool, seed: int
) -> None:
    """A game of two models: how far rounding carries it hides whatever half precision does."""
    truth = Truth(factors={"bf16": 1.5, "malloc": 1.1, "pages": 1.05}, chaos=0.4)
    session = Simulation(truth, seed=seed, curve_rounds=8, switchable=lambda one: switchable and one == BF16)
    result = session.run([BF16, *candidates("malloc", "pages")])
    assert set(names(result)) == {"malloc", "pages"}
    (likely,) = result.likely
    assert "bf16" in {step.name for step in likely.steps}
    assert "not decidable in this budget" in likely.reason


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_beginning_is_proven_along_where_the_whole_is_hard_to_decide(seed: int) -> None:
    """As with steps of a second: the time is over with the sets of one proof."""
    truth = Truth(factors={"bf16": 1.5, "layout": 1.15}, chaos=0.4)
    session = Simulation(
        truth, noisy(seed), seed=seed, budget_s=200.0, curve_rounds=8, switchable=lambda _: True
    )
    result = session.run([BF16, *candidates("layout")])
    assert "layout" in names(result)
    assert names(result) == ["layout", "bf16"] or [step.name for step in result.likely[0].steps] == [
        "layout",
        "bf16",
    ]


def test_where_few_losses_decide_the_exact_beginning_has_no_arm() -> None:
    truth = Truth(factors={"bf16": 1.5, "layout": 1.15})
    session = Simulation(truth, switchable=lambda _: True)
    assert names(session.run([BF16, *candidates("layout")])) == ["layout", "bf16"]
    assert all(len(order.plans) - order.plans.count(()) == 1 for order in session.executor.orders)


class TestStandIns:
    """A gentler form takes the place of what does not learn the same."""

    GENTLE = Candidate(name="gentle", numerics=Numerics.TOLERANCE, prior=1.02)
    CONFLICTS: ClassVar = {"bf16": frozenset({"gentle"}), "gentle": frozenset({"bf16"})}
    FACTORS: ClassVar = {"bf16": 1.5, "gentle": 1.45, "malloc": 1.2}

    def _session(self, truth: Truth, *knobs: str, budget_s: float = DEFAULT_BUDGET_S) -> Simulation:
        return Simulation(
            truth,
            budget_s=budget_s,
            conflicts=self.CONFLICTS,
            stands_in_for={"gentle": frozenset({"bf16"})},
            switchable=lambda one: one.name in knobs,
        )

    @pytest.mark.parametrize("knobs", [(), ("bf16",), ("bf16", "malloc")])
    @pytest.mark.parametrize("budget_s", [200.0, DEFAULT_BUDGET_S])
    def test_it_is_proven(self, knobs: tuple[str, ...], budget_s: float) -> None:
        truth = Truth(factors=self.FACTORS, departing={frozenset({"bf16"}): 0.5})
        result = self._session(truth, *knobs, budget_s=budget_s).run(
            [BF16, *candidates("malloc"), self.GENTLE]
        )
        assert set(names(result)) == {"gentle", "malloc"}
        assert reasons(result)["bf16"].startswith("parity")

    def test_it_is_refused_where_it_does_not_learn_the_same_either(self) -> None:
        departing = {frozenset({"bf16"}): 0.5, frozenset({"gentle"}): 0.5}
        result = self._session(Truth(factors=self.FACTORS, departing=departing), "bf16").run(
            [BF16, *candidates("malloc"), self.GENTLE]
        )
        assert names(result) == ["malloc"]
        assert {name for name, reason in reasons(result).items() if reason.startswith("parity")} == {
            "bf16",
            "gentle",
        }

    @pytest.mark.parametrize("factor", [0.8, 1.5])
    def test_it_is_not_tried_where_what_it_stands_in_for_learns_the_same(self, factor: float) -> None:
        session = self._session(Truth(factors={**self.FACTORS, "bf16": factor}), "bf16")
        result = session.run([BF16, *candidates("malloc"), self.GENTLE])
        assert reasons(result)["gentle"] == "tried only if bf16 fails the parity check"
        assert all(self.GENTLE not in plan for order in session.executor.orders for plan in order.plans)

    def test_it_is_not_used_where_it_does_not_act(self) -> None:
        truth = Truth(
            factors=self.FACTORS, departing={frozenset({"bf16"}): 0.5}, ineffective=frozenset({"gentle"})
        )
        result = self._session(truth, "bf16").run([BF16, *candidates("malloc"), self.GENTLE])
        assert names(result) == ["malloc"]
        assert reasons(result)["gentle"].startswith("no effect")


class TestFailures:
    @pytest.mark.parametrize("kind", list(FailureKind))
    def test_a_failing_candidate_is_refused_with_its_reason_and_the_session_goes_on(
        self, kind: FailureKind
    ) -> None:
        truth = Truth(factors={"good": 1.5}, failures={frozenset({"bad"}): kind})
        result = Simulation(truth).run(candidates("bad", "good"))
        assert names(result) == ["good"]
        said = "not tried" if kind is FailureKind.LATE else f"failed ({kind.value})"
        assert reasons(result)["bad"].startswith(f"{said}: the simulated program")

    def test_a_program_that_cannot_run_beside_itself_is_an_error(self) -> None:
        session = Simulation(Truth(failures={frozenset(): FailureKind.CRASH}))
        with pytest.raises(HotloopError, match=r"could not be run in trials(.|\n)*the last words") as caught:
            session.run(candidates("a"))
        assert caught.value.code is ExitCode.PROGRAM_FAILED
        assert session.executor.closed == 1

    @pytest.mark.parametrize("proven", [False, True])
    def test_a_program_that_fails_later_on_is_said_to_have_failed(self, proven: bool) -> None:
        """It is not told as time that was too short; what was proven before stays."""
        session = Simulation(Truth(factors={"a": 1.5}))

        def listen(text: str) -> None:
            if text.startswith("confirming" if not proven else "compare b"):
                session.executor.truth = Truth(failures={frozenset(): FailureKind.CRASH})

        session.listen(listen)
        tried = [*candidates("a"), Candidate(name="b", one_off_s=250.0)]
        if not proven:
            with pytest.raises(
                HotloopError, match=r"failed as it is, after trials in which it had not"
            ) as caught:
                session.run(tried)
            assert caught.value.code is ExitCode.PROGRAM_FAILED
        else:
            result = session.run(tried)
            assert names(result) == ["a"]
            assert result.coverage == ("trials ended early: the program failed as it is (the last words)",)

    def test_a_knob_that_was_slower_is_not_hoped_for_when_switched_anew(self) -> None:
        """Beside what moved the program there is no time to see all of them again."""
        session = Simulation(
            Truth(factors={"good": 1.2, "bad": 0.8, "mover": 2.0}),
            switchable=lambda one: one.name != "mover",
        )
        switch = session.executor.switch
        session.executor.switch = lambda order, enough: switch(  # type: ignore[method-assign]
            order, (lambda record: len(record.holds) > 1) if order.base else enough
        )
        result = session.run([*candidates("good", "mover"), Candidate(name="bad", prior=1.5)])
        assert [len(order.base) for order in session.executor.switched] == [0, 1]
        assert set(names(result)) == {"good", "mover"}
        assert reasons(result)["bad"].startswith("slower: 0.80")

    def test_without_room_for_all_the_plan_is_confirmed_two_by_two(self) -> None:
        session = Simulation(Truth(factors={"a": 1.5, "b": 1.3, "c": 1.2}, room=2))
        result = session.run(candidates("a", "b", "c"))
        assert names(result) == ["a", "b", "c"]
        assert not reasons(result)
        assert result.plan.speedup is not None
        assert result.plan.speedup.ratio == pytest.approx(1.5 * 1.3 * 1.2, rel=0.02)
        assert max(len(order.plans) for order in session.executor.orders) == 2


class TestConfirmation:
    """What was promising and turns out otherwise in fresh processes."""

    TRIED = ("a", "b", "c")
    FACTORS: ClassVar[dict[str, float]] = {"a": 1.5, "b": 1.3, "c": 1.2}

    def _session(self, when_confirmed: Truth, budget_s: float = DEFAULT_BUDGET_S) -> Simulation:
        session = Simulation(Truth(factors=self.FACTORS), budget_s=budget_s)

        def listen(text: str) -> None:
            if text.startswith("confirming"):
                session.executor.truth = when_confirmed

        session.listen(listen)
        return session

    def test_a_crash_drops_the_step_that_made_it(self) -> None:
        truth = Truth(factors=self.FACTORS, failures={frozenset({"b"}): FailureKind.CRASH})
        result = self._session(truth).run(candidates(*self.TRIED))
        assert names(result) == ["a", "c"]
        assert reasons(result)["b"].startswith("when confirmed: failed (crash)")

    def test_a_set_that_was_not_ready_in_time_says_nothing_of_its_plan(self) -> None:
        late = Truth(factors=self.FACTORS, failures={frozenset({"b"}): FailureKind.LATE})
        session = Simulation(Truth(factors=self.FACTORS), budget_s=DEFAULT_BUDGET_S)

        def listen(text: str) -> None:
            if text.startswith("confirming"):
                session.executor.truth = late if "(2)" in text else Truth(factors=self.FACTORS)

        session.listen(listen)
        result = session.run(candidates(*self.TRIED))
        assert set(names(result)) == {"a", "b", "c"}
        assert result.plan.speedup is not None
        assert result.plan.speedup.ratio == pytest.approx(1.5 * 1.3 * 1.2, rel=0.03)

    @pytest.mark.parametrize("kind", [FailureKind.LATE, FailureKind.CRASH])
    def test_a_first_set_that_fails_once_does_not_end_the_proof(self, kind: FailureKind) -> None:
        """A neighbour slowed the starts, or took the memory: the next set runs."""
        broken = Truth(factors=self.FACTORS, failures={frozenset({"b"}): kind, frozenset({"a"}): kind})
        session = Simulation(Truth(factors=self.FACTORS), budget_s=DEFAULT_BUDGET_S)
        num = 0

        def listen(text: str) -> None:
            nonlocal num
            if text.startswith("confirming"):
                num += 1
                session.executor.truth = broken if num == 1 else Truth(factors=self.FACTORS)

        session.listen(listen)
        result = session.run(candidates(*self.TRIED))
        assert num > 1
        assert set(names(result)) == {"a", "b", "c"}

    def test_losses_that_depart_drop_the_step_that_did_it(self) -> None:
        truth = Truth(factors=self.FACTORS, departing={frozenset({"b"}): 0.2})
        result = self._session(truth).run(candidates(*self.TRIED))
        assert names(result) == ["a", "c"]
        assert reasons(result)["b"].startswith("parity when confirmed: ")
        assert result.plan.speedup is not None
        assert result.plan.speedup.ratio == pytest.approx(1.8, rel=0.02)

    def test_what_is_confirmed_to_cost_time_is_taken_out(self) -> None:
        session = self._session(Truth(factors={"a": 1.5, "b": 0.7, "c": 1.2}))
        result = session.run(candidates(*self.TRIED))
        assert names(result) == ["a", "c"]
        assert reasons(result)["b"].startswith("slower: ")


class TestTime:
    """Never idle, never empty-handed."""

    def test_what_could_not_be_proven_in_time_is_likely_and_a_resumed_session_proves_it(self) -> None:
        journal = Memory()
        truth = Truth(factors={"a": 1.5, "b": 1.2})
        tried = candidates("a", "b")
        first = Simulation(truth, budget_s=45.0, journal=journal).run(tried)
        assert first.plan.steps == ()
        likely = first.likely[0]
        assert likely.low < likely.ratio < likely.high
        assert likely.reason
        assert likely.resume == "hotloop tune --resume --budget 5m python train.py"
        again = Simulation(truth, budget_s=45.0, journal=journal, free=True)
        result = again.run(tried)
        assert names(result), "new time goes to what was likely"
        assert result.wall_s < 1.1 * 45.0

    @pytest.mark.parametrize("budget_s", [30.0, 45.0, 60.0, 90.0, 120.0, 240.0, 600.0])
    def test_the_budget_is_kept_and_used(self, budget_s: float) -> None:
        tried = candidates(*(f"null{number}" for number in range(20)), "good")
        tried[0] = msgspec.structs.replace(tried[-1], prior=1.3)
        for seed in range(5):
            session = Simulation(Truth(factors={"good": 1.3}), noisy(seed), seed=seed, budget_s=budget_s)
            result = session.run(tried[:-1])
            assert result.wall_s < 1.1 * budget_s + 5
            found = names(result) + [step.name for one in result.likely for step in one.steps]
            assert "good" in found

    @pytest.mark.parametrize("budget_s", [460.0, 500.0])
    def test_what_is_compiled_at_every_start_gets_the_time_for_that_in_each_set(
        self, budget_s: float
    ) -> None:
        """A ResNet's proof ended after two of its three sets: arms between its steps compiled, too."""
        factors = {"compile": 1.4, "bf16": 1.3, "pages": 1.1}
        session = Simulation(
            Truth(factors=factors, one_off_s={"compile": 20.0}),
            budget_s=budget_s,
            curve_rounds=14,
            switchable=lambda one: one == BF16,
            start_s=2 * STARTUP_S,
        )
        compiled = Candidate(name="compile", prior=1.5, one_off_s=45.0)
        assert {"bf16", "compile"} <= set(names(session.run([compiled, BF16, *candidates("pages")])))
        assert session.clock.now_s - 1000 <= 1.05 * budget_s

    def test_a_large_known_gain_is_proven_in_a_minute(self) -> None:
        tried = [Candidate(name="good", prior=1.5), *candidates("null")]
        result = Simulation(Truth(factors={"good": 1.5}), noisy(3), seed=3, budget_s=60.0).run(tried)
        assert names(result) == ["good"]

    def test_a_busy_machine_is_screened_with_passive_waiting_and_confirmed_as_the_user_runs(self) -> None:
        session = Simulation(Truth(factors={"a": 1.5}), busy=True, switchable=lambda _: True)
        result = session.run(candidates("a", "null"))
        assert names(result) == ["a"]
        assert session.executor.switched[0].passive
        assert not any(order.passive for order in session.executor.orders)

    @pytest.mark.parametrize("more", [(), ("arm",)])
    def test_knobs_are_switched_again_once_the_neighbours_have_left(self, more: tuple[str, ...]) -> None:
        """One thread was 1.05 beside threads that waited passively, and 0.7 as the user runs."""
        truth = Truth(
            factors={"a": 1.4, "one thread": 0.8, "arm": 1.1}, passive={"one thread": 1.1, "a": 1.45}
        )
        session = Simulation(truth, busy=True, switchable=lambda one: one.name != "arm")
        result = session.run(candidates("a", "one thread", *more))
        assert session.executor.switched[0].passive
        assert not any(order.passive for order in session.executor.switched[1:])
        assert set(names(result)) == {"a", *more}
        assert reasons(result)["one thread"].startswith("slower: 0.")
        for step in result.plan.steps:
            assert step.ratio == pytest.approx(truth.factors[step.name], rel=0.03)

    @pytest.mark.parametrize(("observed_s", "waits"), [(STEP_S, True), (STEP_S / 5, False)])
    def test_passive_waiting_ends_where_it_makes_the_step_longer_than_it_was(
        self, observed_s: float, waits: bool
    ) -> None:
        """A neighbour that has left leaves a program whose barriers are many five times slower for nothing."""
        truth = Truth(factors={"a": 1.5, WAITING: 0.5 if not waits else 1.1})
        session = Simulation(truth, busy=True, observed_s=observed_s)
        result = session.run(candidates("a", WAITING, "null"))
        first, *rest = session.executor.orders
        assert first.passive
        assert not any(order.passive for order in rest)
        assert set(names(result)) == ({"a", WAITING} if waits else {"a"})

    def test_what_there_was_no_time_for_is_said(self) -> None:
        result = Simulation(Truth(), budget_s=100.0).run(
            candidates(*(f"null{number}" for number in range(20)))
        )
        untried = [reason for reason in reasons(result).values() if reason.startswith("not tried: ")]
        assert len(untried) + len(result.trials) >= 19
        assert untried

    def test_what_finished_work_took_is_charged_to_a_session_that_was_killed(self) -> None:
        journal = Memory()
        first = Simulation(Truth(factors={"a": 1.3}), journal=journal).run(candidates("a", "null"))
        again = Simulation(Truth(factors={"a": 1.3}), journal=journal)
        result = again.run(candidates("a", "null"))
        assert again.executor.orders == []
        assert result.wall_s == pytest.approx(first.wall_s)


def test_a_steady_set_goes_on_until_its_losses_can_be_compared() -> None:
    steady = ((1.0, 0.5),) * 12
    steer = while_time(lambda: 100.0, 2, 3, curve_rounds=12)
    assert list(steer(steady[:6])) == [0, 1]
    assert list(steer(steady)) == []
    assert list(while_time(lambda: 100.0, 2, 3)(steady[:6])) == []
    assert list(while_time(lambda: -1.0, 2, 3, curve_rounds=12)(steady[:6])) == [], "the time is over"


class TestBottleneck:
    """What holds a program back is another thing once the first one is gone."""

    WORKERS: ClassVar = [
        Candidate(name="workers", params={"num": num}, prior=1.5, numerics=Numerics.TOLERANCE)
        for num in (2, 1)
    ]

    @staticmethod
    def _knobs(one: Candidate) -> bool:
        return one.name != "workers"

    def test_knobs_are_switched_beside_what_is_expected_to_move_it(self) -> None:
        truth = Truth(factors={"workers": 1.6}, together={frozenset({"workers", "bf16"}): 1.3})
        session = Simulation(truth, switchable=self._knobs)
        result = session.run([*self.WORKERS[:1], BF16, *candidates("null")])
        assert [step.name for step in session.executor.switched[0].base] == ["workers"]
        assert set(names(result)) == {"workers", "bf16"}

    def test_knobs_are_switched_again_beside_what_moved_it_unexpectedly(self) -> None:
        truth = Truth(factors={"workers": 1.6}, together={frozenset({"workers", "bf16"}): 1.3})
        session = Simulation(truth, switchable=self._knobs)
        result = session.run([*candidates("workers"), BF16, *candidates("null")])
        first, again = session.executor.switched[:2]
        assert not first.base
        assert "workers" in {step.name for step in again.base}
        assert set(names(result)) == {"workers", "bf16"}

    def test_knobs_are_switched_again_beside_a_knob_that_moved_it(self) -> None:
        """With samples in memory the model is all that is left of the step: what was a hundredth of it counts."""
        beside = {frozenset({"kept", "fused"}): 1.08, frozenset({"kept", "one thread"}): 0.8}
        truth = Truth(factors={"kept": 5.0, "one thread": 1.15, "hopeless": 0.4}, together=beside)
        for seed in range(3):
            session = Simulation(truth, noisy(seed), seed=seed, switchable=self._knobs)
            result = session.run(candidates("kept", "fused", "one thread", "hopeless"))
            _, again, *_ = session.executor.switched
            assert "kept" in {step.name for step in again.base}
            assert set(names(result)) == {"kept", "fused"}

    def test_a_knob_that_moved_it_ends_the_switching_where_time_is_short(self) -> None:
        truth = Truth(factors={"kept": 5.0, "fused": 1.08})
        session = Simulation(truth, budget_s=60.0, switchable=self._knobs)
        assert "kept" in names(session.run(candidates("kept", "fused")))

    def test_a_variant_that_is_faster_is_taken_although_it_was_less_likely(self) -> None:
        truth = Truth(factors={"workers(num=1)": 1.8, "workers(num=2)": 1.4})
        assert dict(Simulation(truth).run(self.WORKERS).plan.steps[0].params) == {"num": 1}

    def test_a_contest_that_is_clear_ends_before_its_rounds_are_over(self) -> None:
        session = Simulation(Truth(factors={"workers": 1.6}), start_s=2 * STARTUP_S)
        outcomes = [trial.outcome for trial in session.run(self.WORKERS).trials]
        assert session.executor.orders[0].max_rounds > STEADY_ROUNDS
        assert all(len(one.pairs[0]) == STEADY_ROUNDS for one in outcomes if isinstance(one, Measured))


def test_an_interval_that_tells_nothing_is_not_shown() -> None:
    session = Simulation(Truth(), Noise(pair_sd=0.8, block_sd=3.0, rho=0.0))
    first = session.run(candidates("null")).trials[0]
    assert first.decision.startswith("no difference shown: times varied too much to tell, in ")


class Crowded(Disturbance):
    """From some block on others make every step longer, and each block by another factor."""

    def __init__(self, factor: float, quiet: int) -> None:
        self._factor, self._quiet = factor, quiet
        self._rng = np.random.default_rng(0)

    def process(self) -> float:
        return 1.0

    def turns(self, num: int, steps: int) -> list[float]:
        self._quiet -= 1
        return [self._factor * math.exp(0.6 * self._rng.normal()) if self._quiet < 0 else 1.0] * num

    def hold(self, steps: int) -> list[float]:
        return [1.0] * steps


@pytest.mark.parametrize("factor", [3.0, 4.0])
def test_a_set_leaves_the_other_sets_of_a_proof_their_time(factor: float) -> None:
    """Blocks that neighbours made longer took all the time of one set, and nothing was proven."""
    session = Simulation(Truth(factors={"a": 5.0}), disturbance=Crowded(factor, 16), budget_s=200.0)
    result = session.run(candidates("a"))
    sets = [order for order in session.executor.orders if order.plans[-1] and len(order.plans) == 2]
    assert len(sets) >= 3
    assert names(result) == ["a"]
    assert result.wall_s <= 1.1 * 200.0


def test_a_plan_that_departs_beside_what_is_compared_with_it_loses_the_step_that_departs() -> None:
    """The set counted as one of its proof: the plan was given up, and nothing was proven in the rest of the time."""
    half = Candidate(name="half", prior=1.5, numerics=Numerics.TOLERANCE)
    allocator = Candidate(name="allocator", prior=1.3)
    arms = [Candidate(name=f"arm{number}", prior=1.5) for number in range(4)]
    truth = Truth(factors={"half": 1.5, "allocator": 1.3}, departing={frozenset({"half"}): 0.3})
    session = Simulation(
        truth, budget_s=300.0, switchable=lambda one: one.name in {"half", "allocator"}, curve_rounds=1
    )
    result = session.run([half, allocator, *arms])
    assert names(result) == ["allocator"]
    assert "parity" in reasons(result)["half"]
