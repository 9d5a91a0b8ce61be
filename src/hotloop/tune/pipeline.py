"""`tune` from the user's words to the result: session, observation, trials."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hotloop.launch.command import resolve, script_of
from hotloop.launch.isolation.decide import Exceptions, Isolation, check_covered, plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.errors import HotloopError
from hotloop.model.machine import EnvironmentCheck
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.quantities import duration
from hotloop.model.tuning import TuneResult
from hotloop.observe.run.observe_command import LiveRun, observe
from hotloop.observe.run.origin import ORIGIN
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.registry import all_optimizations, broken_plugins
from hotloop.store.keys import OBSERVATION, RESULT
from hotloop.store.session import Session
from hotloop.tune.design.candidates import Wishes, propose
from hotloop.tune.design.experience import keep_outcomes, kept_outcomes
from hotloop.tune.design.preflight import hindrances, look
from hotloop.tune.observing import observe_for_trials
from hotloop.tune.prepared import blocks_of, design_of, executor_of, without_neighbours
from hotloop.tune.session.budget import Budget
from hotloop.tune.session.earlier import with_earlier_limits
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.session.resume import session_of
from hotloop.tune.session.stage import Stage
from hotloop.tune.sets.set_runner import EndedEarly
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.standard_input import copied_input
from hotloop.tune.tuner import Tuner


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


class Parts(NamedTuple):
    """What a session observes and runs programs with, and what it may try."""

    observe: Callable[[LiveRun, Callable[[str], None]], Observation] = observe
    executor: Callable[..., DuetExecutor] = executor_of
    catalogue: Callable[[], Sequence[Optimization]] = all_optimizations


PARTS = Parts()


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
    parts: Parts = PARTS,
) -> Tuned:
    """Tune a command.

    Args:
        order: what the user asked for.
        progress: told of what goes on.
        note: told of what is to stay on the screen.
        standing: told how far it is, in a line.
        warn: told what the user's files cannot be kept from; None: `note` is.
        parts: what runs the program.

    Raises:
        HotloopError: it cannot be run, observed, or resumed.
    """
    order.wishes.check()
    argv = resolve(order.words)
    _check_isolation(order, argv, warn or note)
    budget = Budget(order.budget_s, time.monotonic)
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
        ledger = Ledger(session, budget, free=session.get(RESULT, TuneResult) is not None)

        def observed() -> Observation:
            seen = observe_for_trials(
                order.words, order.exceptions, order.budget_s, progress, note, parts.observe
            )
            return _known(session, seen)

        observation = ledger.once(OBSERVATION, Observation, observed)
        try:
            result = _tuned(order, observation, argv, ledger, progress, stdin, standing, parts)
        except EndedEarly as early:
            # It is as long as that: smaller blocks, and as many as it has.
            note(f"hotloop: the program ends after {early.num_steps} steps; trials are made to fit")
            observation = msgspec.structs.replace(observation, total_steps=early.num_steps)
            ledger.put(OBSERVATION, observation)
            result = _tuned(order, observation, argv, ledger, progress, stdin, standing, parts)
        except Exception as error:
            if not isinstance(error, HotloopError | OSError | MemoryError):
                again = shlex.join(["hotloop", "tune", "--resume", *order.words])
                note(f"hotloop: a defect of hotloop ends the session; what was measured is kept: {again}")
            raise
        session.put(RESULT, result)
        if not order.resume:  # what a session had before was counted then
            keep_outcomes(result.trials, observation.program.device)
    return Tuned(result, session.name)


def _tuned(
    order: TuneOrder,
    observation: Observation,
    argv: list[str],
    ledger: Ledger,
    progress: Callable[[str], None],
    stdin: Path | None,
    standing: Callable[[str], None] | None,
    parts: Parts,
) -> TuneResult:
    expected = without_neighbours(observation)
    # A session that goes on keeps its blocks, whatever time it is given now.
    blocks = blocks_of(expected, ledger.once("blocks_for_s", float, lambda: order.budget_s))
    in_the_way = hindrances(observation, look(os.environ))
    for one in in_the_way:
        progress(one.text)
    own_network = not (observation.uses_network or order.exceptions.network)
    isolation = _isolation(order, argv, network=own_network)
    stage = Stage(progress)
    executor = parts.executor(
        argv,
        observation,
        isolation,
        blocks,
        stdin,
        stage.passing,
        ledger.budget,
        in_the_way,
        counts_memory=order.wishes.aim.counts_memory,
    )
    catalogue = parts.catalogue()
    candidates, refused = propose(observation, catalogue, order.wishes, kept_outcomes())
    design = design_of(observation, expected, blocks, catalogue, order.wishes.aim)
    tuner = Tuner(observation, executor, ledger, design, stage.begin, standing)
    result = tuner.run(candidates, [*refused, *broken_plugins()])
    gaps = (*_coverage(isolation), *(one.text for one in in_the_way), *result.coverage)
    return msgspec.structs.replace(result, coverage=gaps)


def _wishes(session: Session, wishes: Wishes) -> Wishes:
    """Return what may be tried: who goes on with a session and says nothing of it wants what was wanted before."""
    if wishes == Wishes():
        return session.get("wishes", Wishes) or wishes
    session.put("wishes", wishes)
    return wishes


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


def _coverage(isolation: Isolation) -> tuple[str, ...]:
    return (f"isolation: {isolation.missing}",) if isolation.missing else ()
