"""What a session can do next; each action knows what it may bring, what it takes, and why it was chosen."""

from __future__ import annotations

import msgspec

from hotloop.tune.executor import PlanSteps


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What all actions have in common."""

    value: float
    """Expected increase of the log gain that can be proven."""
    cost_s: float
    """Expected seconds."""
    why: str = ""
    """One line for the session, the screen and the report."""

    @property
    def rate(self) -> float:
        """Expected increase per second."""
        return self.value / max(self.cost_s, 1e-3)


class Screen(Action, frozen=True, kw_only=True, tag="screen"):
    """Switch knobs on and off together in one process."""

    base: PlanSteps
    """What is on all the time."""
    knobs: PlanSteps
    limit_s: float
    """Of the process, the start included."""
    price: float
    """Log gain per second that the time brings elsewhere: switching ends below it."""
    passive: bool = False


class Compare(Action, frozen=True, kw_only=True, tag="compare"):
    """Run a plan, and the plan with each of some candidates on, beside the original in fresh processes."""

    base: PlanSteps
    tried: PlanSteps
    rounds: int
    keep_s: float
    """Of the time left, what a proof needs."""
    ready_s: float
    """Seconds after which an arm that is not warm is given up."""
    passive: bool = False


class Confirm(Action, frozen=True, kw_only=True, tag="confirm"):
    """Run one set of fresh processes with a plan against the original; value and cost are those of all sets to come."""

    plan: PlanSteps


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is done any more."""

    why: str
    is_done: bool
    """Whether nothing that is left is worth its time; False: there is too little time for it."""


Doing = Screen | Compare | Confirm


def steps_of(action: Doing) -> PlanSteps:
    """Return what an action tells of."""
    if isinstance(action, Screen):
        return action.knobs
    return action.tried if isinstance(action, Compare) else action.plan


def base_of(action: Doing) -> PlanSteps:
    """Return what is on all the time."""
    return () if isinstance(action, Confirm) else action.base
