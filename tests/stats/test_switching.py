"""The regression over switched holds: right effects, honest errors, foreign bursts and drift kept out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hotloop.stats.switching import SwitchedHold, SwitchFit, fit_switches, random_walk

KNOBS = ("a", "b", "c", "null")


def switched(
    gains: dict[tuple[str, ...], float],
    seed: int,
    *,
    num: int = 64,
    noise: float = 0.03,
    rho: float = 0.0,
    drift: float = 0.0,
    bursts: float = 0.0,
) -> list[SwitchedHold]:
    """Holds of random patterns of a program of 100 ms with AR(1) noise, drift and foreign bursts."""
    rng = np.random.default_rng(seed)
    level, holds = 0.0, []
    for index in range(num):
        on = frozenset(knob for knob in KNOBS if rng.random() < 0.5)
        level = rho * level + noise * math.sqrt(1 - rho**2) * rng.normal()
        gain = sum(value for names, value in gains.items() if set(names) <= on)
        burst = 1.5 if rng.random() < bursts else 0.0
        holds.append(SwitchedHold(on, math.log(0.1) - gain + level + drift * index / num + burst))
    return holds


def fitted(holds: list[SwitchedHold], pairs: tuple[tuple[str, str], ...] = ()) -> SwitchFit:
    fit = fit_switches(holds, KNOBS, pairs)
    assert fit is not None
    return fit


def test_every_knob_has_its_gain_from_the_same_holds() -> None:
    gains = {("a",): math.log(1.5), ("b",): math.log(1.2), ("c",): math.log(0.8)}
    fit = fitted(switched(gains, 1))
    for knob, true in (("a", 1.5), ("b", 1.2), ("c", 0.8), ("null", 1.0)):
        ratio = fit.ratio([knob])
        assert ratio.ratio == pytest.approx(true, rel=0.03)
        assert ratio.high / ratio.low < 1.06


def test_knobs_that_help_one_another_are_told_from_those_that_do_not() -> None:
    gains = {("a",): math.log(1.3), ("a", "b"): math.log(1.4)}
    fit = fitted(switched(gains, 2), (("a", "b"),))
    assert fit.ratio(["b"]).low < 1 < fit.ratio(["b"]).high
    assert fit.ratio(["a", "b"], ["a"]).low > 1.3
    assert fit.ratio(["a", "b"]).ratio == pytest.approx(1.3 * 1.4, rel=0.05)


def test_two_processes_tell_more_than_one_and_a_quieter_one_counts_more() -> None:
    gains = {("a",): math.log(1.3), ("b",): math.log(1.05)}
    wild, quiet = fitted(switched(gains, 3, noise=0.1)), fitted(switched(gains, 4, noise=0.02))
    both = wild.joined(quiet)
    for knob, true in (("a", 1.3), ("b", 1.05), ("null", 1.0)):
        gain, error = both.gain([knob])
        assert error < min(wild.gain([knob])[1], quiet.gain([knob])[1])
        assert gain == pytest.approx(quiet.gain([knob])[0], abs=0.01)
        assert gain == pytest.approx(math.log(true), abs=3 * error)
    assert both.df == wild.df + quiet.df


def test_what_only_one_process_switched_is_known_from_that_one() -> None:
    first = fitted(switched({("a",): math.log(1.3), ("b",): math.log(1.1)}, 5))
    second = fit_switches(switched({("a",): math.log(1.3)}, 6), ("a",))
    assert second is not None
    both = first.joined(second)
    assert both.knobs == first.knobs
    assert both.gain(["b"])[0] == pytest.approx(first.gain(["b"])[0], abs=first.gain(["b"])[1])
    assert both.gain(["a"])[1] < first.gain(["a"])[1]


@pytest.mark.parametrize(("drift", "bursts"), [(0.5, 0.0), (0.0, 0.08), (0.5, 0.08)])
def test_drift_and_foreign_bursts_do_not_decide(drift: float, bursts: float) -> None:
    fit = fitted(switched({("a",): math.log(1.3)}, 3, drift=drift, bursts=bursts))
    assert fit.ratio(["a"]).ratio == pytest.approx(1.3, rel=0.06)
    assert fit.ratio(["a"]).low > 1.15


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_interval_of_a_null_holds_one_as_often_as_it_says(rho: float) -> None:
    fits = [fitted(switched({}, seed, noise=0.1, rho=rho, bursts=0.03)) for seed in range(150)]
    outside = sum(not fit.ratio(["null"]).low <= 1 <= fit.ratio(["null"]).high for fit in fits)
    assert outside <= 15, "5% of 150 are 7.5; more than 15 has a chance of 1%"


def walked(seed: int, *, step: float, noise: float = 0.02, bursts: float = 0.0) -> list[SwitchedHold]:
    """Few holds, one knob on at a time between others with nothing on, while the machine's speed wanders."""
    rng = np.random.default_rng(seed)
    level, holds = 0.0, []
    for index in range(28):
        level += step * rng.normal()
        on = frozenset({KNOBS[index // 2 % len(KNOBS)]}) if index % 2 else frozenset()
        gain = 0.3 if "a" in on else 0.0
        burst = 1.1 if bursts and rng.random() < bursts else 0.0
        holds.append(SwitchedHold(on, level - gain + noise * rng.normal() + burst))
    return holds


def test_a_burst_does_not_hide_that_the_speed_wanders() -> None:
    fits = [fitted(walked(seed, step=0.08, bursts=0.04)) for seed in range(150)]
    assert float(np.median([abs(fit.gain(["a"])[0] - 0.3) for fit in fits])) < 0.035
    outside = sum(not fit.ratio(["null"]).low <= 1 <= fit.ratio(["null"]).high for fit in fits)
    assert outside <= 15, "5% of 150 are 7.5; more than 15 has a chance of 1%"


def test_a_machine_whose_speed_wanders_is_followed() -> None:
    fits = [fitted(walked(seed, step=0.08)) for seed in range(150)]
    errors = [fit.gain(["a"])[0] - 0.3 for fit in fits]
    spread = float(np.std(errors))
    assert spread < 0.038, "0.041 with an intercept for every 12 holds"
    claimed = float(np.mean([fit.gain(["a"])[1] for fit in fits]))
    assert spread / 1.25 < claimed < 1.25 * spread, "0.072 with an intercept for every 12 holds"
    outside = sum(not fit.ratio(["null"]).low <= 1 <= fit.ratio(["null"]).high for fit in fits)
    assert outside <= 15, "5% of 150 are 7.5; more than 15 has a chance of 1%"


def test_on_a_machine_that_keeps_its_speed_nothing_is_lost() -> None:
    errors = [fitted(walked(seed, step=0.0)).gain(["a"])[0] - 0.3 for seed in range(150)]
    assert float(np.std(errors)) < 0.015, "0.01 is what noise of 0.02 over three holds and many leaves"


@pytest.mark.parametrize("num", [2, 3, 28, 113])
def test_the_components_of_a_random_walk_make_up_its_covariance(num: int) -> None:
    variances, vectors = random_walk(num)
    places = np.arange(float(num))
    assert (vectors * variances) @ vectors.T == pytest.approx(np.minimum.outer(places, places), abs=1e-8)
    assert vectors.T @ vectors == pytest.approx(np.eye(num), abs=1e-9)


def test_too_few_holds_give_no_fit_and_pairs_go_before_knobs() -> None:
    holds = switched({("a",): 0.3}, 4, num=64)
    assert fit_switches(holds[:6], KNOBS) is None
    fit = fit_switches(holds[:12], KNOBS, (("a", "b"), ("a", "c"), ("b", "c"), ("a", "null"), ("b", "null")))
    assert fit is None or set(fit.knobs) == set(KNOBS)


def test_a_knob_that_was_always_on_is_left_out() -> None:
    holds = [SwitchedHold(hold.on | {"a"}, hold.log_s) for hold in switched({}, 5)]
    assert "a" not in fitted(holds).knobs
