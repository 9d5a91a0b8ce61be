"""Ceilings and predictions for `diagnose`: one more run of the program, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from hotloop.launch.command import resolve
from hotloop.launch.deadline import Deadline
from hotloop.launch.isolation.decide import plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.observation import Coverage, Observation
from hotloop.observe.run.observe_command import Interrupted, LiveRun
from hotloop.optimize.registry import all_optimizations
from hotloop.tune.design.candidates import Wishes, propose
from hotloop.whatif.measure import measure, with_whatif
from hotloop.whatif.orders import least_s


def with_limits(
    observation: Observation, live: LiveRun, deadline: Deadline, progress: Callable[[str], None]
) -> Observation:
    """Return the observation with ceilings and predictions, as far as the time allows.

    Raises:
        Interrupted: Ctrl-C, with the observation as it was.
    """
    reason = _reason_against(observation, deadline, full=live.rule.full)
    if reason:
        return _without(observation, reason)
    candidates, _ = propose(observation, all_optimizations(), Wishes())
    argv = resolve(live.words)
    isolation = plan_isolation(
        argv, Path.cwd(), scratch_root(), network=not observation.uses_network, exceptions=live.exceptions
    )
    try:
        return with_whatif(observation, measure(observation, candidates, argv, isolation, deadline, progress))
    except KeyboardInterrupt:
        raise Interrupted(interrupted_limits(observation)) from None


def without_limits(observation: Observation) -> Observation:
    """Return the observation with the reason why it has neither: nobody wanted them."""
    return _without(observation, "not asked for (--no-ceilings)")


def interrupted_limits(observation: Observation) -> Observation:
    """Return the observation with the reason why it has neither: the user ended the command before."""
    return _without(observation, "you interrupted the command")


def _reason_against(observation: Observation, deadline: Deadline, *, full: bool) -> str:
    if full:
        return "the program ran to completion (--full) and is not run again"
    if observation.exit_code not in (None, 0):
        return f"the program failed with exit code {observation.exit_code}"
    if observation.step is None or observation.anchor is None:
        return "no step was measured"
    needs_s = least_s(observation.run.startup_s, observation.step.median_s)
    return deadline.no_time if deadline.left_s() < needs_s else ""


def _without(observation: Observation, why: str) -> Observation:
    gap = Coverage("ceilings and predictions", why)
    return msgspec.structs.replace(observation, coverage=(*observation.coverage, gap))
