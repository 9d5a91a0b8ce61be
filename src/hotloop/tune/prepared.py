"""What a session's trials are made of, from an observation: the blocks, the experiment's design, what runs the arms."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hotloop.launch.isolation.decide import Isolation, plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.errors import HotloopError
from hotloop.model.goal import Aim
from hotloop.model.observation import Observation
from hotloop.optimize.optimization import Optimization
from hotloop.tune.design.block_length import Blocks, shape_blocks
from hotloop.tune.design.candidates import conflicts
from hotloop.tune.design.costs import expected_costs
from hotloop.tune.design.elapsed import elapsed_step_s, holds_more, period_steps
from hotloop.tune.design.experiment import Design
from hotloop.tune.design.neighbours import is_busy, was_busy
from hotloop.tune.design.preflight import Hindrance
from hotloop.tune.design.switchable import has_workers, interactions, switchable
from hotloop.tune.session.budget import Budget
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.setting import Setting
from hotloop.tune.trials.switching import hold_steps

HOLD_S = 0.3
"""Of a pattern of knobs; at least two steps. Held for three steps of 42 ms each, bf16 showed 2.04x of its 2.38x, in
holds of 0.8 s all of it; drift asks for short ones."""
PASSIVE_GAIN = 2.5
"""Of passive waiting beside a busy neighbour, the least that was measured (187-345 ms a step against 68-100)."""
TYPICAL_SPREAD = 1.5
"""95th percentile over median, up to which long steps are the machine's doing and not the program's."""
GIVE_UP = 0.06
"""Of the budget: a set that has said nothing so long after its end is given up."""
QUIET_WAIT, QUIET_WAIT_S = 0.03, 20.0
"""Of the budget, and seconds, that a set waits for others to leave a machine that was quiet when the program was
observed. What compiles or tests on the other core is over soon, and a set beside it tells little."""
MIN_ROUNDS = 3
"""Below three blocks an arm nothing can be said."""


def without_neighbours(observation: Observation) -> Observation:
    """Return the observation with the step that arms are expected to take: beside a neighbour they wait passively."""
    step = observation.step
    assert step is not None
    gain = PASSIVE_GAIN if was_busy(observation) else 1.0
    expected_s = min(step.low_s, step.median_s / gain)
    return msgspec.structs.replace(
        observation, step=msgspec.structs.replace(step, median_s=expected_s, p95_s=step.p95_s / gain)
    )


def design_of(
    observation: Observation,
    expected: Observation,
    blocks: Blocks,
    catalogue: Sequence[Optimization],
    aim: Aim = Aim(),  # noqa: B008 - frozen
) -> Design:
    """Return what the experiment is designed from.

    Args:
        observation: of the program.
        expected: with the step that arms are expected to take (`without_neighbours`).
        blocks: the shape of a trial.
        catalogue: all optimizations that there are.
        aim: what a plan is for.
    """
    step = expected.step
    assert step is not None
    on_host = observation.program.device == "cpu"
    named = {one.name: one for one in catalogue}
    return Design(
        costs=expected_costs(expected, blocks),
        busy=was_busy(observation) and is_busy(),
        observed_s=observation.step.median_s if observation.step is not None else None,
        observed_busy=was_busy(observation),
        usual_s=elapsed_step_s(observation),
        hold_s=_hold_s(expected) + 3 * step.median_s,
        max_rounds=blocks.max_rounds,
        curve_rounds=blocks.curve_rounds(),
        # Steps of a device are queued, so single ones say nothing on the host's clock.
        typical=on_host and step.p95_s <= TYPICAL_SPREAD * step.median_s,
        conflicts=conflicts(catalogue, on_cpu=on_host),
        interactions=interactions(catalogue),
        stands_in_for={one.name: one.stands_in_for for one in catalogue},
        heed_neighbours=frozenset(one.name for one in catalogue if one.heeds_neighbours),
        # A knob that is switched shows no memory of its own.
        switchable=lambda one: not aim.counts_memory and switchable(named[one.name], one),
        aim=aim,
        alike=lambda one: named[one.name].shortens_every_step(),
        buffered=lambda plan: has_workers(observation, plan),
    )


def _hold_s(expected: Observation) -> float:
    """Return what a hold takes on the clock: where rollouts come every few steps, whole periods of them are in it."""
    assert expected.step is not None
    elapsed_s = _held_step_s(expected)
    if elapsed_s is None:
        return HOLD_S
    steps = hold_steps(HOLD_S, expected.step.median_s, period_steps(expected), elapsed_s)
    return max(HOLD_S, steps * elapsed_s)


def _held_step_s(expected: Observation) -> float | None:
    """Return a step with all that lies between steps, where most holds have something of it; None: few have."""
    assert expected.step is not None
    often = holds_more(expected, math.ceil(HOLD_S / expected.step.median_s))
    return elapsed_step_s(expected) if often else None


def blocks_of(observation: Observation, budget_s: float = math.inf) -> Blocks:
    """Return the shape of a trial of so many seconds.

    Raises:
        HotloopError: the program ends before anything could be compared.
    """
    blocks = shape_blocks(observation, observation.epoch_steps, observation.total_steps, budget_s=budget_s)
    if blocks.max_rounds is not None and blocks.max_rounds < MIN_ROUNDS:
        raise HotloopError(
            f"the program ends after {observation.total_steps} steps, too few to compare anything",
            "give it more to do: more steps, more epochs, or more data",
        )
    return blocks


def executor_like_a_session(
    argv: list[str], observation: Observation, say: Callable[[str], None]
) -> DuetExecutor:
    """Return what a session would run its trials with, in the current folder: for measuring plans by themselves."""
    blocks = blocks_of(without_neighbours(observation))
    isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=not observation.uses_network)
    endless = Budget(math.inf, time.monotonic)
    return executor_of(argv, observation, isolation, blocks, None, say, endless, ())


def executor_of(
    argv: list[str],
    observation: Observation,
    isolation: Isolation,
    blocks: Blocks,
    stdin: Path | None,
    say: Callable[[str], None],
    budget: Budget,
    in_the_way: Sequence[Hindrance],
    *,
    aim: Aim = Aim(),  # noqa: B008 - frozen
) -> DuetExecutor:
    """Return what runs the arms of a session.

    Args:
        argv: the command, resolved.
        observation: of the program, with steps.
        isolation: what arms are kept from.
        blocks: the shape of a trial.
        stdin: what the program reads from standard input; None: nothing.
        say: told of what is done.
        budget: of the session.
        in_the_way: what of the machine hinders trials.
        aim: what a plan is for: where memory counts, each arm's is measured before it is timed.
    """
    assert observation.anchor is not None
    assert observation.step is not None
    setting = Setting(
        argv=tuple(argv),
        environment=dict(os.environ),
        isolation=isolation,
        anchor=observation.anchor,
        num_ranks=len(observation.ranks),
        step_s=observation.step.p95_s,
        startup_s=observation.run.startup_s,
        typical_s=without_neighbours(observation).step.median_s,  # type: ignore[union-attr]
        hold_s=HOLD_S,
        elapsed_s=_held_step_s(without_neighbours(observation)),
        period_steps=period_steps(observation),
        peak_bytes=observation.memory.host_peak_bytes,
        devices=observation.memory.devices,
        one_at_a_time=any(one.one_at_a_time for one in in_the_way),
        program_seeds=observation.program.seeds,
        stdin=stdin,
        counts_memory=aim.counts_memory,
        fit_bytes=aim.fit_bytes,
        grace_s=GIVE_UP * budget.seconds,
        quiet_wait_s=0.0 if was_busy(observation) else min(QUIET_WAIT * budget.seconds, QUIET_WAIT_S),
    )
    return DuetExecutor(setting, blocks, say, budget.left)
