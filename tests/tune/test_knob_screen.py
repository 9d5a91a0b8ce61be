"""What a hold is summed up by: its quickest steps for what shortens every step, its median for what does not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hotloop.model.optimization import Candidate
from hotloop.stats.switching import SwitchFit
from hotloop.tune.executor import Hold, SwitchRecord
from hotloop.tune.search.knob_screen import KnobScreen, switch_order
from hotloop.tune.trials.switching import hold_steps

from .simulated import QUIET, Clock, SimulatedExecutor, Truth

EVEN, FETCH = Candidate(name="even"), Candidate(name="fetch")
ORDER = switch_order([EVEN, FETCH], {}, 60.0)


def holds(seed: int) -> tuple[Hold, ...]:
    """A machine that is 1.5 times as slow for a third of the steps; what is fetched makes every second step longer."""
    rng = np.random.default_rng(seed)
    found = []
    for pattern in ORDER.patterns[:160]:
        steps = np.full(20, 0.01)
        steps[::2] *= 1.2 / (1.1 if "fetch" in pattern else 1.0)
        steps /= 1.05 if "even" in pattern else 1.0
        steps *= np.where(rng.random(20) < rng.uniform(0.0, 0.6), 1.5, 1.0) * rng.normal(1.0, 0.01, 20)
        found.append(Hold(pattern, tuple(float(step) for step in steps)))
    return tuple(found)


EFFECTS = {"even": (True, ""), "fetch": (True, "")}


def _screen(alike: Callable[[Candidate], bool]) -> KnobScreen:
    return KnobScreen(SimulatedExecutor(Truth(), QUIET, Clock(), 0), {}, {}, typical=True, alike=alike)


def fitted(seed: int, alike: Callable[[Candidate], bool]) -> SwitchFit:
    fit = _screen(alike).fit(SwitchRecord(holds=holds(seed), effects=EFFECTS), ORDER)
    assert fit is not None
    return fit


@pytest.mark.parametrize("seed", range(3))
def test_what_shortens_every_step_is_told_from_the_quickest_ones(seed: int) -> None:
    usual, quickest = fitted(seed, lambda _: False), fitted(seed, lambda one: one == EVEN)
    gain, error = quickest.gain(["even"])
    assert error < 0.5 * usual.gain(["even"])[1]
    assert gain == pytest.approx(math.log(1.05), abs=3 * error)


@pytest.mark.parametrize("seed", range(3))
def test_what_shortens_some_steps_is_not_hidden_by_the_quickest_ones(seed: int) -> None:
    usual = fitted(seed, lambda _: False)
    mixed, hidden = fitted(seed, lambda one: one == EVEN), fitted(seed, lambda _: True)
    assert mixed.gain(["fetch"]) == pytest.approx(usual.gain(["fetch"]))
    assert hidden.gain(["fetch"])[0] < 0.01 < mixed.gain(["fetch"])[0]
    assert mixed.gain(["even", "fetch"])[0] == pytest.approx(
        mixed.gain(["even"])[0] + mixed.gain(["fetch"])[0]
    )


HOPELESS = Candidate(name="hopeless")


@pytest.mark.parametrize(("rollout_s", "wanted", "even"), [(0.008, 1.06, 1.027), (0.0, 0.97, 1.05)])
def test_what_acts_between_the_steps_is_told_from_the_whole(
    rollout_s: float, wanted: float, even: float
) -> None:
    """One thread made a reinforcement learner's steps slower, and its rollouts quicker by more.

    Of a knob that is in no pattern, because it was far slower alone, the whole says nothing.
    """
    rng = np.random.default_rng(0)
    found = [Hold(on, (0.02 if on else 0.01,) * 20) for on in ((), ("hopeless",)) * 2]
    for pattern in ORDER.patterns[:160]:
        steps = 0.01 * rng.normal(1.0, 0.01, 20) / (1.05 if "even" in pattern else 1.0)
        steps *= 1 / 0.97 if "fetch" in pattern else 1.0
        between = rollout_s * rng.normal(1.0, 0.05) / (1.2 if "fetch" in pattern else 1.0)
        found.append(Hold(pattern, tuple(map(float, steps)), float(steps.mean()) + between))
    effects = {**EFFECTS, "hopeless": (True, "")}
    order = switch_order([EVEN, FETCH, HOPELESS], {}, 60.0)
    fit = _screen(lambda one: one == EVEN).fit(SwitchRecord(holds=tuple(found), effects=effects), order)
    assert fit is not None
    assert math.exp(fit.gain(["fetch"])[0]) == pytest.approx(wanted, abs=0.01)
    assert math.exp(fit.gain(["even"])[0]) == pytest.approx(even, abs=0.01)
    assert math.exp(fit.gain(["hopeless"])[0]) < 0.8


@pytest.mark.parametrize(
    ("step_s", "period_steps", "steps"), [(0.002, 16, 144), (0.002, 1, 150), (0.1, 5, 5), (0.1, 40, 3)]
)
def test_a_hold_is_of_whole_periods_where_they_are_not_much_longer(
    step_s: float, period_steps: int, steps: int
) -> None:
    assert hold_steps(0.3, step_s, period_steps) == steps


@pytest.mark.parametrize(
    ("step_s", "period_steps", "elapsed_s", "steps"),
    [(0.004, 8, 0.04, 8), (0.004, 8, 0.4, 8), (0.004, 1, 0.04, 8), (0.1, 250, 0.12, 3), (0.004, 8, None, 72)],
)
def test_a_hold_takes_its_time_on_the_clock_where_rollouts_lie_between_steps(
    step_s: float, period_steps: int, elapsed_s: float | None, steps: int
) -> None:
    """Of 4 ms and 0.3 s of rollouts each eight steps a hold took 2.9 s: nothing was told in the time of a screening."""
    assert hold_steps(0.3, step_s, period_steps, elapsed_s) == steps
