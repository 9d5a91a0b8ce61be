"""`tune` from the user's words to the result: session, observation, trials."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hotloop.launch.command import resolve, script_of
from hotloop.launch.isolation.decide import Exceptions, Isolation, check_covered, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.machine import EnvironmentCheck
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.quantities import counted, duration
from hotloop.model.tuning import TuneResult
from hotloop.observe.run.live import Interrupted, LiveRun, observe
from hotloop.observe.run.origin import ORIGIN
from hotloop.observe.run.stopping import StopRule
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.registry import all_optimizations, broken_plugins, get
from hotloop.store.session import Session
from hotloop.tune.design.block_length import Blocks, shape_blocks
from hotloop.tune.design.candidates import Wishes, conflicts, propose
from hotloop.tune.design.costs import expected_costs
from hotloop.tune.design.experience import keep_outcomes, kept_outcomes
from hotloop.tune.design.experiment import Design
from hotloop.tune.design.neighbours import is_busy, was_busy
from hotloop.tune.design.preflight import Hindrance, hindrances, look
from hotloop.tune.design.switchable import has_workers, interactions, switchable
from hotloop.tune.search.arms import EndedEarly
from hotloop.tune.session.budget import Budget
from hotloop.tune.session.earlier import with_earlier_limits
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.session.resume import session_of
from hotloop.tune.session.stage import Stage
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.setting import Setting
from hotloop.tune.trials.standard_input import copied_input
from hotloop.tune.tuner import Tuner

OBSERVE_SHARE = 0.5
"""Of the budget: a program whose first steps take longer cannot be tuned in it."""
OBSERVE_S, OBSERVE_STEPS = (3.0, 8.0), 5
"""Measured after the warm-up, within these seconds a thirtieth of the budget; and no fewer steps."""
HOLD_S = 0.3
"""Of a pattern of knobs; at least two steps. Held for three steps of 42 ms each, bf16 showed 2.04x of its 2.38x, in
holds of 0.8 s all of it; drift asks for short ones."""
PASSIVE_GAIN = 2.5
"""Of passive waiting beside a busy neighbour, the least that was measured (187-345 ms a step against 68-100)."""
TYPICAL_SPREAD = 1.5
"""95th percentile over median, up to which long steps are the machine's doing and not the program's."""
LATEST = 0.06
"""Of the budget: a set that has said nothing so long after its end is given up."""
_NO_INPUT = (
    "it reads from standard input, which trials do not have: hotloop tune ... < answers.txt gives it a file"
)
MIN_ROUNDS = 3
"""Below three blocks an arm nothing can be said."""


class TuneOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for.

    Attributes:
        words: the command.
        budget_s: seconds to spend.
        wishes: what may be tried.
        resume: go on with the newest session of this command.
        exceptions: what of the user's files the program may change.
        checks: of the environment, before it.
    """

    words: tuple[str, ...]
    budget_s: float
    wishes: Wishes
    resume: bool = False
    exceptions: Exceptions = Exceptions()
    checks: tuple[EnvironmentCheck, ...] = ()


class Tuned(NamedTuple):
    """What was found, and the session that keeps it."""

    result: TuneResult
    session: str


def tune(
    order: TuneOrder,
    progress: Callable[[str], None],
    note: Callable[[str], None],
    standing: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Tuned:
    """Tune a command.

    Args:
        order: what the user asked for.
        progress: told of what goes on.
        note: told of what is to stay on the screen.
        standing: told how far it is, in a line.
        warn: told what the user's files cannot be kept from; None: `note` is.

    Raises:
        HotloopError: it cannot be run, observed, or resumed.
    """
    order.wishes.check()
    argv = resolve(order.words)
    _check_isolation(order, argv, warn or note)
    budget = Budget(order.budget_s, time.monotonic)
    say = progress
    with (
        contextlib.closing(
            session_of(order.words, script_of(argv), order.checks, resume=order.resume)
        ) as session,
        copied_input() as stdin,
    ):
        note(
            f"hotloop: session {session.name}, budget {duration(order.budget_s)}; your program runs many times, "
            "its output is not shown"
        )
        order = msgspec.structs.replace(order, wishes=_wishes(session, order.wishes))
        ledger = Ledger(session, budget, free=session.get("result", TuneResult) is not None)
        observation = ledger.once(
            "observation", Observation, lambda: _known(session, _observe(order, say, note, budget))
        )
        try:
            result = _tuned(order, observation, argv, ledger, say, stdin, standing)
        except EndedEarly as early:
            # It is as long as that: smaller blocks, and as many as it has.
            note(f"hotloop: the program ends after {early.num_steps} steps; trials are made to fit")
            observation = msgspec.structs.replace(observation, total_steps=early.num_steps)
            ledger.put("observation", observation)
            result = _tuned(order, observation, argv, ledger, say, stdin, standing)
        except Exception as error:
            if not isinstance(error, HotloopError | OSError | MemoryError):
                again = shlex.join(["hotloop", "tune", "--resume", *order.words])
                note(f"hotloop: a defect of hotloop ends the session; what was measured is kept: {again}")
            raise
        session.put("result", result)
        if not order.resume:  # what a session had before was counted then
            keep_outcomes(result.trials, observation.program.device)
    return Tuned(result, session.name)


def _tuned(
    order: TuneOrder,
    observation: Observation,
    argv: list[str],
    ledger: Ledger,
    say: Callable[[str], None],
    stdin: Path | None,
    standing: Callable[[str], None] | None,
) -> TuneResult:
    expected = _without_neighbours(observation)
    # A session that goes on keeps its blocks, whatever time it is given now.
    blocks = _blocks(expected, ledger.once("blocks_for_s", float, lambda: order.budget_s))
    in_the_way = hindrances(observation, look(os.environ))
    for one in in_the_way:
        say(one.text)
    isolation = _isolation(order, argv, network=not observation.uses_network)
    stage = Stage(say)
    executor = _executor(
        argv, observation, isolation, blocks, stdin, stage.passing, ledger.budget, in_the_way
    )
    catalogue = all_optimizations()
    candidates, refused = propose(observation, catalogue, order.wishes, kept_outcomes())
    design = _design(observation, expected, blocks, catalogue)
    tuner = Tuner(observation, executor, ledger, design, stage.begin, standing)
    result = tuner.run(candidates, [*refused, *broken_plugins()])
    gaps = (*_coverage(executor), *(one.text for one in in_the_way), *result.coverage)
    return msgspec.structs.replace(result, coverage=gaps)


def _wishes(session: Session, wishes: Wishes) -> Wishes:
    """Return what may be tried: who goes on with a session and says nothing of it wants what was wanted before."""
    if wishes == Wishes():
        return session.get("wishes", Wishes) or wishes
    session.put("wishes", wishes)
    return wishes


def _without_neighbours(observation: Observation) -> Observation:
    """Return the observation with the step that arms are expected to take: beside a neighbour they wait passively."""
    step = observation.step
    assert step is not None
    gain = PASSIVE_GAIN if was_busy(observation) else 1.0
    expected_s = min(step.low_s, step.median_s / gain)
    return msgspec.structs.replace(
        observation, step=msgspec.structs.replace(step, median_s=expected_s, p95_s=step.p95_s / gain)
    )


def _design(
    observation: Observation, expected: Observation, blocks: Blocks, catalogue: Sequence[Optimization]
) -> Design:
    step = expected.step
    assert step is not None
    on_host = observation.program.device == "cpu"
    return Design(
        costs=expected_costs(expected, blocks),
        busy=was_busy(observation) and is_busy(),
        observed_s=observation.step.median_s if observation.step is not None else None,
        hold_s=HOLD_S + 3 * step.median_s,
        max_rounds=blocks.max_rounds,
        curve_rounds=blocks.curve_rounds(),
        # Steps of a device are queued, so single ones say nothing on the host's clock.
        typical=on_host and step.p95_s <= TYPICAL_SPREAD * step.median_s,
        conflicts=conflicts(catalogue, on_cpu=on_host),
        interactions=interactions(catalogue),
        stands_in_for={one.name: one.stands_in_for for one in catalogue},
        heed_neighbours=frozenset(one.name for one in catalogue if one.heeds_neighbours),
        switchable=switchable,
        alike=lambda one: get(one.name).shortens_every_step(),
        buffered=lambda plan: has_workers(observation, plan),
    )


def _blocks(observation: Observation, budget_s: float = math.inf) -> Blocks:
    blocks = shape_blocks(observation, observation.epoch_steps, observation.total_steps, budget_s=budget_s)
    if blocks.max_rounds is not None and blocks.max_rounds < MIN_ROUNDS:
        raise HotloopError(
            f"the program ends after {observation.total_steps} steps, too few to compare anything",
            "give it more to do: more steps, more epochs, or more data",
        )
    return blocks


def _check_isolation(order: TuneOrder, argv: list[str], warn: Callable[[str], None]) -> None:
    """Before anything runs: refuse where the user's files could be changed, say what is less than wanted."""
    isolation = _isolation(order, argv, network=False)
    check_covered(isolation, allow_writes=order.exceptions.all_writes)
    if isolation.missing is not None:
        warn(f"hotloop: {isolation.missing}")


def _isolation(order: TuneOrder, argv: list[str], *, network: bool) -> Isolation:
    return plan_isolation(argv, Path.cwd(), scratch_root(), network=network, exceptions=order.exceptions)


def _known(session: Session, seen: Observation) -> Observation:
    """Return an observation with what `diagnose` found out of the same program before."""
    of = session.get(ORIGIN, Origin)
    return seen if of is None else with_earlier_limits(seen, of, Path.cwd())


def _observe(
    order: TuneOrder, say: Callable[[str], None], note: Callable[[str], None], budget: Budget
) -> Observation:
    scratch = new_scratch("observe-log")
    seconds = min(OBSERVE_S[1], max(OBSERVE_S[0], budget.seconds / 30))
    warnings: list[str] = []
    try:
        live = LiveRun(
            words=order.words,
            rule=StopRule(seconds=seconds, few=OBSERVE_STEPS),
            log=scratch / "log",
            limit_s=OBSERVE_SHARE * budget.seconds,
            exceptions=order.exceptions,
            warn=warnings.append,
            note=lambda text: note(f"hotloop: {text}"),
        )
        seen = observe(live, lambda text: say(f"observing your program: {text.removeprefix('measuring: ')}"))
        return _works(seen, warnings)
    except Interrupted:
        raise KeyboardInterrupt from None  # too little was seen to go on with
    except HotloopError as error:
        log = scratch / "log"
        end = "\n".join(log.read_text(errors="replace").splitlines()[-12:]) if log.exists() else ""
        message = f"{error.message}; the end of its output:\n{end}" if end else error.message
        raise HotloopError(message, _NO_INPUT if "EOFError" in end else error.hint, error.code) from error
    finally:
        remove(scratch)


def _works(seen: Observation, warnings: Sequence[str]) -> Observation:
    """Return what was seen of a program that works: one that fails cannot be compared with itself.

    Args:
        seen: the observation.
        warnings: whose failure it was, where that was tried.

    Raises:
        HotloopError: it failed.
    """
    if seen.exit_code in (None, 0):
        return seen
    num = seen.run.num_steps
    after = f" after {counted(num, 'step')}" if num else ""
    raise HotloopError(
        f"your program failed{after} (exit code {seen.exit_code}), so there is nothing to tune",
        " ".join(text.removeprefix("hotloop: ") for text in warnings) or "correct it first",
        ExitCode.PROGRAM_FAILED,
    )


def executor_like_a_session(
    argv: list[str], observation: Observation, say: Callable[[str], None]
) -> DuetExecutor:
    """Return what a session would run its trials with, in the current folder: for measuring plans by themselves."""
    blocks = _blocks(_without_neighbours(observation))
    isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=not observation.uses_network)
    endless = Budget(math.inf, time.monotonic)
    return _executor(argv, observation, isolation, blocks, None, say, endless, ())


def _executor(
    argv: list[str],
    observation: Observation,
    isolation: Isolation,
    blocks: Blocks,
    stdin: Path | None,
    say: Callable[[str], None],
    budget: Budget,
    in_the_way: Sequence[Hindrance],
) -> DuetExecutor:
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
        typical_s=_without_neighbours(observation).step.median_s,  # type: ignore[union-attr]
        hold_s=HOLD_S,
        peak_bytes=observation.memory.host_peak_bytes,
        devices=observation.memory.devices,
        one_at_a_time=any(one.one_at_a_time for one in in_the_way),
        program_seeds=observation.program.seeds,
        stdin=stdin,
        grace_s=LATEST * budget.seconds,
    )
    return DuetExecutor(setting, blocks, say, budget.left)


def _coverage(executor: DuetExecutor) -> tuple[str, ...]:
    missing = executor.isolation.missing
    return (f"isolation: {missing}",) if missing else ()
