"""How the shape of a trial follows from the program's step and length."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from hotloop.model.observation import Observation, RunAccount
from hotloop.model.step_series import StepSeries
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.parity import MIN_STEPS
from hotloop.tune.design.block_length import LONG_STEP_S, Blocks, shape_blocks
from hotloop.tune.design.elapsed import elapsed_step_s, period_steps
from hotloop.tune.prepared import design_of

from .simulated import observation


def _shape(step_s: float, epoch: int | None = None, total: int | None = None) -> Blocks:
    seen = observation()
    assert seen.step is not None
    step = msgspec.structs.replace(seen.step, median_s=step_s)
    return shape_blocks(msgspec.structs.replace(seen, step=step), epoch, total)


def test_a_block_of_a_100_ms_step() -> None:
    assert _shape(0.1) == Blocks(
        num_steps=1,
        discard=1,
        warm_steps=10,
        max_rounds=None,
        turns=6,
        typical=True,
        turn_s=0.2,
        trains=True,
    )


@pytest.mark.parametrize(
    ("evaluations", "epochs", "trains"),
    [
        ((), (), True),
        ((10, 20), (0, 25), True),
        (tuple(range(0, 50, 2)), (1,), False),
        ((), tuple(range(50)), False),
    ],
)
def test_turns_with_a_new_epoch_are_left_out_where_they_are_rare(
    evaluations: tuple[int, ...], epochs: tuple[int, ...], trains: bool
) -> None:
    seen = observation()
    assert seen.step is not None
    step = msgspec.structs.replace(seen.step, median_s=1.0)
    empty = StepSeries(rank=None, pid=1, num=50, begin_s=b"", duration_s=b"", phases={}, kind=b"")
    series = msgspec.structs.replace(empty, evaluations=evaluations, epochs=epochs)
    long = msgspec.structs.replace(seen, step=step, series=(series,))
    assert shape_blocks(long, None, None).trains is trains


def test_an_epoch_is_as_long_as_it_takes_on_the_clock() -> None:
    seen = observation()
    assert seen.step is not None
    step = msgspec.structs.replace(seen.step, median_s=0.2, p50_s=0.2)
    run = RunAccount(wall_s=30.0, parts={"evaluation_s": 18.0}, num_steps=54)
    long = msgspec.structs.replace(seen, step=step, run=run)
    assert (
        shape_blocks(msgspec.structs.replace(long, run=RunAccount(wall_s=0, parts={})), 18, None).num_steps
        == 18
    )
    assert shape_blocks(msgspec.structs.replace(long, epoch_steps=18), 18, None).num_steps == 1


def _with_pauses(step_s: float, pause_s: float, apart: Sequence[int], evaluates: bool = False) -> Observation:
    """Steps of which some, so many apart, have something else in them."""
    seen = observation()
    assert seen.step is not None
    at = list(itertools.accumulate(apart))
    seconds = np.full(at[-1] + 1, step_s, "<f4")
    seconds[at] += pause_s
    series = StepSeries(
        rank=None,
        pid=1,
        num=len(seconds),
        begin_s=b"",
        duration_s=seconds.tobytes(),
        phases={},
        kind=bytes(len(seconds)),
        evaluations=tuple(at) if evaluates else (),
    )
    step = msgspec.structs.replace(seen.step, median_s=step_s, p50_s=step_s)
    run = RunAccount(wall_s=float(seconds.sum()), parts={}, num_steps=len(seconds))
    return msgspec.structs.replace(seen, step=step, run=run, series=(series,))


@pytest.mark.parametrize("evaluates", [False, True])
def test_what_comes_between_steps_again_and_again_is_timed_with_them(evaluates: bool) -> None:
    plots = _with_pauses(0.005, 0.5, [5] * 40, evaluates)
    assert elapsed_step_s(plots) == pytest.approx(0.105, rel=0.05)
    blocks = shape_blocks(plots, None, None)
    assert (blocks.num_steps, blocks.turns, blocks.warm_steps) == (5, 1, 10)
    rollouts = shape_blocks(_with_pauses(0.0014, 0.04, [16] * 40, evaluates), None, None)
    assert (rollouts.num_steps, rollouts.turns) == (16, 6)


def test_a_hold_is_priced_at_what_it_takes_on_the_clock() -> None:
    rollouts = _with_pauses(0.004, 1.0, [8] * 40, evaluates=True)
    design = design_of(rollouts, rollouts, shape_blocks(rollouts, None, None), ())
    assert design.hold_s == pytest.approx(8 * 0.004 + 1.0, rel=0.05)
    rare = _with_pauses(0.1, 1.0, [250] * 4, evaluates=True)
    assert design_of(rare, rare, shape_blocks(rare, None, None), ()).hold_s == pytest.approx(0.6)


def test_long_steps_that_neighbours_make_hide_no_rhythm_of_rollouts() -> None:
    """In a noisy hour every third long step of a reinforcement learner was none of its own."""
    seen = _with_pauses(0.0014, 0.04, [16] * 40, evaluates=True)
    (series,) = seen.series
    seconds = np.frombuffer(series.duration_s, "<f4").copy()
    seconds[5::48] += 0.04
    series = msgspec.structs.replace(series, duration_s=seconds.tobytes())
    assert period_steps(msgspec.structs.replace(seen, series=(series,))) == 16


def test_what_comes_in_no_rhythm_is_timed_by_the_clock() -> None:
    blocks = shape_blocks(_with_pauses(0.005, 0.5, [5, 9, 3, 7, 2, 8] * 8), None, None)
    assert (blocks.num_steps, blocks.turns) == (2, 3)


def test_what_comes_rarely_is_no_part_of_a_block() -> None:
    assert shape_blocks(_with_pauses(0.1, 20.0, [50] * 5), None, None) == _shape(0.1)
    seldom = _with_pauses(0.005, 30.0, [1000, 1000])
    assert elapsed_step_s(seldom) == 0.005
    assert shape_blocks(seldom, None, None) == _shape(0.005)


@pytest.mark.parametrize("step_s", [0.001, 0.01, 0.1, 0.5, 1.0, 3.0])
def test_the_shortest_trial_leaves_a_curve_that_can_be_compared(step_s: float) -> None:
    blocks = _shape(step_s)
    assert blocks.warm_steps + blocks.curve_rounds() * blocks.per_block() >= MIN_STEPS
    curve = blocks.with_curve()
    assert curve.warm_steps + MIN_BLOCKS * curve.per_block() >= MIN_STEPS
    assert blocks.num_steps >= 1
    assert int(step_s < LONG_STEP_S) <= blocks.discard <= blocks.num_steps


def test_a_first_evaluation_that_comes_soon_is_part_of_the_warm_up() -> None:
    """What it leaves in the allocator makes all steps after it faster."""
    seen = _with_pauses(0.1, 1.0, [20] * 5, evaluates=True)
    assert seen.series[0].evaluations[0] == 20
    assert shape_blocks(seen, None, None).warm_steps == 22, "the first step is in no series"
    assert shape_blocks(seen, None, None, budget_s=250.0).warm_steps == 10, "3 s are too long"
    assert shape_blocks(seen, None, 105).warm_steps == 10, "too much of a short program"
    assert shape_blocks(seen, None, 110).warm_steps == 22
    late = _with_pauses(0.1, 5.0, [20] * 5, evaluates=True)
    assert shape_blocks(late, None, None).warm_steps == 10
    assert shape_blocks(_with_pauses(0.1, 1.0, [20] * 5), None, None).warm_steps == 10, "no evaluation"
    at_once = _with_pauses(0.1, 0.0, [0, 20, 20], evaluates=True)
    assert shape_blocks(at_once, None, None).warm_steps == 10


def test_short_epochs_are_timed_whole() -> None:
    assert _shape(0.1, epoch=5).num_steps == 5
    assert _shape(0.1, epoch=12).num_steps == 12
    assert _shape(0.1, epoch=1000).num_steps == 1


@pytest.mark.parametrize("total", [30, 60, 200, 5000])
def test_a_short_program_is_not_asked_for_more_steps_than_it_has(total: int) -> None:
    blocks = _shape(0.1, total=total)
    assert blocks.max_rounds is not None
    assert blocks.warm_steps + blocks.max_rounds * blocks.per_block() < total
    assert blocks.max_rounds >= 4


def test_a_program_of_a_few_steps_has_no_round() -> None:
    assert _shape(0.1, total=4).max_rounds == 0
