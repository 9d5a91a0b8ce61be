"""What a session says of memory and cost where the truth is known."""

from __future__ import annotations

import math

import pytest

from hotloop.model.goal import Aim, Goal
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import TuneResult

from ..stats.simulated import Noise
from .sessions import Simulation, names, reasons
from .simulated import PEAK, Truth, candidates

MEMORY = Aim(goal=Goal.MEMORY)
QUIET = Noise(pair_sd=0.01, block_sd=0.01, rho=0.0, spike_share=0.0)


def savers(*names: str) -> list[Candidate]:
    """Candidates of the family memory."""
    return [Candidate(name=name, saves_memory=True) for name in names]


def tuned(truth: Truth, tried: list[Candidate], aim: Aim, budget_s: float = 1200.0) -> TuneResult:
    """One session."""
    return Simulation(truth, QUIET, aim=aim, budget_s=budget_s).run(tried)


def fit(share: float) -> Aim:
    """A limit at a share of the program's peak."""
    return Aim(fit_bytes=int(share * PEAK))


def test_less_memory_is_proven_with_its_interval_and_its_time() -> None:
    truth = Truth(factors={"checkpoint": 0.8}, memory={"checkpoint": 0.45, "null": 1.0})
    result = tuned(truth, savers("checkpoint", "null"), MEMORY)
    assert names(result) == ["checkpoint"]
    assert result.goal is not None
    assert result.goal.memory is not None
    assert result.goal.memory.low > 1 / 0.46
    assert result.goal.peak_bytes == (PEAK, int(0.45 * PEAK))
    assert result.plan.speedup is not None
    assert result.plan.speedup.ratio == pytest.approx(0.8, rel=0.03)
    assert result.plan.steps[0].memory_ratio == pytest.approx(1 / 0.45, rel=0.03)
    assert result.plan.parity is not None
    assert result.plan.parity.passed


def test_changes_that_save_memory_go_together_as_long_as_the_step_is_not_too_slow() -> None:
    truth = Truth(
        factors={"a": 0.9, "b": 0.9, "slow": 0.6},
        memory={"a": 0.7, "b": 0.8, "slow": 0.2},
    )
    result = tuned(truth, savers("a", "b", "slow"), MEMORY)
    assert set(names(result)) == {"a", "b"}
    assert reasons(result)["slow"].startswith("too slow: ")


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_at_the_edge_of_what_is_allowed_gives_way_to_one_that_can_be_proven(seed: int) -> None:
    """One is 0.78x as fast, and 0.77x is allowed: no interval after eight sets is above that."""
    truth = Truth(factors={"a": 0.78, "b": 0.9}, memory={"a": 0.5, "b": 0.7})
    noise = Noise(pair_sd=0.03, block_sd=0.03, rho=0.0, spike_share=0.0)
    result = Simulation(truth, noise, aim=MEMORY, budget_s=1200.0, seed=seed).run(savers("a", "b"))
    assert names(result) == ["b"]


def test_how_much_slower_is_the_users_to_say() -> None:
    truth = Truth(factors={"slow": 0.6}, memory={"slow": 0.2})
    result = tuned(truth, savers("slow"), Aim(goal=Goal.MEMORY, max_slowdown=1.0))
    assert names(result) == ["slow"]


def test_what_does_not_learn_the_same_is_in_no_plan_however_small_it_is() -> None:
    truth = Truth(memory={"wrong": 0.3, "right": 0.7}, departing={frozenset({"wrong"}): 0.3})
    result = tuned(truth, savers("wrong", "right"), MEMORY)
    assert names(result) == ["right"]
    assert reasons(result)["wrong"].startswith("parity")


def test_where_nothing_saves_memory_the_plan_is_empty() -> None:
    truth = Truth(memory={"a": 1.0, "b": 1.05}, factors={"a": 1.4})
    result = tuned(truth, savers("a", "b"), MEMORY)
    assert not names(result)
    assert result.goal is not None
    assert result.goal.memory is None


def test_a_limit_is_met_first_and_speed_is_found_within_it() -> None:
    truth = Truth(
        factors={"checkpoint": 0.8, "offload": 0.5, "bf16": 1.5, "fast_and_large": 1.4},
        memory={"checkpoint": 0.5, "offload": 0.4, "bf16": 0.75, "fast_and_large": 1.6},
    )
    tried = [*savers("checkpoint", "offload", "bf16"), *candidates("fast_and_large", "null")]
    result = tuned(truth, tried, fit(0.4), 2400.0)
    assert set(names(result)) == {"checkpoint", "bf16"}
    assert result.goal is not None
    assert result.goal.fits
    assert result.plan.speedup is not None
    assert result.plan.speedup.ratio == pytest.approx(1.2, rel=0.05)
    assert reasons(result)["fast_and_large"].startswith("does not fit: ")


def test_the_fastest_of_those_that_fit_is_taken_even_where_it_costs_time() -> None:
    truth = Truth(factors={"quick": 0.9, "small": 0.7}, memory={"quick": 0.55, "small": 0.3})
    result = tuned(truth, savers("small", "quick"), fit(0.6))
    assert names(result) == ["quick"]
    assert result.plan.speedup is not None
    assert result.plan.speedup.ratio < 1


def test_several_changes_are_needed_for_a_limit() -> None:
    left = {"a": 0.8, "b": 0.8, "c": 0.8, "d": 0.8}
    truth = Truth(factors=dict.fromkeys(left, 0.95), memory=left)
    result = tuned(truth, savers(*left), fit(0.55), 2400.0)
    assert len(names(result)) == 3
    assert result.goal is not None
    assert result.goal.fits
    points = result.goal.points
    assert len({frozenset(one.names) for one in points}) == len(points), "whatever the order of the changes"
    (chosen,) = (one for one in points if one.chosen)
    (original,) = (one for one in points if not one.names)
    assert result.plan.speedup is not None
    assert original.step_s / chosen.step_s == pytest.approx(result.plan.speedup.ratio), (
        "one figure for one plan"
    )


def test_a_limit_that_is_never_met_is_said_with_the_smallest_that_was_seen() -> None:
    truth = Truth(factors={"a": 0.9}, memory={"a": 0.7})
    result = tuned(truth, [*savers("a"), *candidates("null")], fit(0.4))
    assert not names(result)
    goal = result.goal
    assert goal is not None
    assert goal.fits is False
    assert goal.smallest is not None
    assert goal.smallest.names == ("a",)
    assert goal.smallest.peak_bytes == int(0.7 * PEAK)


def test_a_program_that_fits_as_it_is_becomes_faster_within_the_limit() -> None:
    truth = Truth(factors={"large": 1.6, "small": 1.2}, memory={"large": 1.5, "small": 1.0})
    result = tuned(truth, candidates("large", "small"), fit(1.2))
    assert names(result) == ["small"]
    assert reasons(result)["large"].startswith("does not fit: ")


def test_a_program_that_fits_as_it_is_and_cannot_be_faster_stays_and_fits() -> None:
    result = tuned(Truth(memory={"a": 0.9}), savers("a"), fit(1.2))
    assert not names(result)
    assert result.goal is not None
    assert result.goal.fits


def test_of_two_that_are_alike_one_is_taken_and_the_table_has_both() -> None:
    truth = Truth(memory={"a": 0.5, "b": 0.5}, factors={"a": 0.9, "b": 0.9})
    simulation = Simulation(
        truth, QUIET, aim=fit(0.6), budget_s=1200.0, conflicts={"a": frozenset({"b"}), "b": frozenset({"a"})}
    )
    result = simulation.run(savers("a", "b"))
    assert len(names(result)) == 1
    assert result.goal is not None
    points = {point.names: point for point in result.goal.points}
    assert {(), ("a",), ("b",)} <= points.keys()
    assert [point.names for point in points.values() if point.chosen] == [tuple(names(result))]
    assert points[()].optimal, "it is the fastest"
    assert any(points[one].optimal for one in (("a",), ("b",)))
    assert math.isclose(points[("a",)].peak_bytes, points[("b",)].peak_bytes, rel_tol=0.001)


def test_cost_is_time_times_price() -> None:
    aim = Aim(goal=Goal.COST, price_per_hour=3.6)
    result = tuned(Truth(factors={"a": 1.5}), candidates("a"), aim)
    cost = result.goal.cost if result.goal is not None else None
    assert cost is not None
    assert (cost.unit, cost.watts) == ("1000 steps", None)
    assert cost.before == pytest.approx(0.1)
    assert cost.after == pytest.approx(0.1 / 1.5, rel=0.05)


def test_an_unread_power_meter_is_said() -> None:
    aim = Aim(goal=Goal.COST, price_per_hour=3.6, power_price=0.3)
    result = tuned(Truth(factors={"a": 1.5}), candidates("a"), aim)
    cost = result.goal.cost if result.goal is not None else None
    assert cost is not None
    assert "no power sensor" in cost.method
