"""Observe the user's command: one run that measures its steps, and further ones for what that one could not show."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from hotloop.launch.command import resolve
from hotloop.launch.deadline import endless
from hotloop.launch.environment import with_changes
from hotloop.machine.card.cache import kept_card
from hotloop.model.observation import INTERRUPTED, Coverage, Observation
from hotloop.observe.profile.efficiency import with_efficiency
from hotloop.observe.profile.profile import deep_of, with_account, with_all_workers
from hotloop.observe.profile.windows import orders
from hotloop.observe.run.first_run import FirstRun, Interrupted, LiveRun, Progress, first_run
from hotloop.observe.run.further_run import Again, run_again
from hotloop.observe.run.looks import Looks
from hotloop.observe.run.network_use import NETWORK, NeedsNetwork
from hotloop.observe.run.pace import Pace

__all__ = ["Interrupted", "LiveRun", "Progress", "observe"]


def observe(live: LiveRun, progress: Progress, environment: Mapping[str, str] | None = None) -> Observation:
    """Return what was measured of a program.

    Its steps, phases and account are of one run. What the instruments could not see in that one, because it ended or
    came to no step, they see in further runs, as far as the deadline allows.

    Raises:
        HotloopError: the command cannot be run.
        NoStepError: it runs no Python with torch, or took no step.
        Interrupted: Ctrl-C, with what was measured.
    """
    argv = resolve(live.words)
    variables = environment or os.environ
    if variables.get(NETWORK):
        live = _with_network(live)
    try:
        first = first_run(live, argv, progress, variables)
    except NeedsNetwork as needs:
        (live.note or progress)(str(needs))
        live = _with_network(live)
        first = first_run(live, argv, progress, variables)
    looks = Looks(first.names, first.look)
    if first.interrupted:
        observation = _whole(first.observation, looks, "you interrupted the run")
        raise Interrupted(observation if observation.step else None)
    why = _reason_against(live, first)
    if looks.missing() and not why:
        assert first.pace is not None
        again = _again(live, argv, variables, first, first.pace)
        try:
            why = looks.further(
                first.pace, again.deadline, lambda names, scale: run_again(again, names, scale, progress)
            )
        except KeyboardInterrupt:
            gap = Coverage(INTERRUPTED, "you interrupted a further run of the program")
            raise Interrupted(_whole(first.observation, looks, "you interrupted the run", gap)) from None
    return _whole(first.observation, looks, why)


def _with_network(live: LiveRun) -> LiveRun:
    return msgspec.structs.replace(live, exceptions=msgspec.structs.replace(live.exceptions, network=True))


def _reason_against(live: LiveRun, first: FirstRun) -> str:
    """Return why the program is not run again to look closer; empty: it may be."""
    if live.rule.full:
        return "the whole run is the user's own"
    if first.look.exit_code:
        return f"the program failed with exit code {first.look.exit_code}"
    if first.pace is None:
        return "the program took too few steps"
    if not first.covered:
        return "the program ended, and is not run again where its writes cannot be kept from your files"
    return ""


def _again(
    live: LiveRun, argv: Sequence[str], variables: Mapping[str, str], first: FirstRun, pace: Pace
) -> Again:
    return Again(
        argv=tuple(argv),
        environment=dict(with_changes(variables, live.changes)),
        exceptions=live.exceptions,
        uses_network=bool(first.observation.uses_network),
        known=tuple(order["name"] for order in orders(live.deep)),
        pace=pace,
        deadline=live.deadline or endless(),
        snapshot=live.snapshot,
    )


def _whole(observation: Observation, looks: Looks, why: str, *gaps: Coverage) -> Observation:
    """Return the observation with what the instruments saw, and with what they could not see."""
    seen = msgspec.structs.replace(
        observation,
        deep=deep_of(looks.values()),
        coverage=(*observation.coverage, *looks.gaps(why), *gaps),
        runs=looks.runs(),
    )
    return with_efficiency(with_all_workers(with_account(seen)), kept_card())
