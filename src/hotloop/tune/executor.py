"""What runs trials: the real one starts processes, the one of the tests draws from a known truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from hotloop.model.optimization import Candidate, Effect
from hotloop.model.tuning import Contention, Failure

PlanSteps = tuple[Candidate, ...]
"""Optimizations that are on together, in order; empty: the program as it is."""
Enough = Callable[[Sequence[Sequence[float]]], bool]
"""Given the rounds so far (seconds a step of each arm, round by round), whether to stop."""


class SetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A set of arms to run beside one another.

    Attributes:
        plans: what is on in each arm.
        max_rounds: rounds at most; each gives every arm one block.
        fresh: all arms are new processes that take the same steps; otherwise the first may live on.
    """

    plans: tuple[PlanSteps, ...]
    max_rounds: int
    fresh: bool


class ArmRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one arm did."""

    step_s: float
    losses: tuple[float, ...] = ()
    loss_sites: tuple[int, ...] = ()
    """The place of the backward call of each loss, by number; empty: there is one."""
    effects: tuple[Effect, ...] = ()
    notes: tuple[str, ...] = ()
    peak_bytes: int | None = None
    first_steps_s: float | None = None
    """Start-up and warm-up together; None: the arm was alive before."""
    phases: dict[str, float] = {}
    """Seconds of each phase of a step, which add up to it; empty: not measured."""


class SetRecord(msgspec.Struct, frozen=True, kw_only=True, tag="measured"):
    """What a set did: seconds a step of every arm, round by round."""

    rounds: tuple[tuple[float, ...], ...]
    arms: tuple[ArmRecord, ...]
    contention: Contention

    def log_ratios(self, slow: int, fast: int) -> tuple[float, ...]:
        """Return log(time of arm `slow` / time of arm `fast`), round by round."""
        return tuple(math.log(times[slow] / times[fast]) for times in self.rounds)


class SetFailed(msgspec.Struct, frozen=True, tag="failed"):
    """An arm failed; the set gave nothing."""

    arm: int
    failure: Failure


class Executor(Protocol):
    """Runs sets of arms."""

    def run(self, order: SetOrder, enough: Enough) -> SetRecord | SetFailed:
        """Run a set until `enough` says so or its rounds are over."""

    def perturbed(self, num_losses: int) -> tuple[float, ...]:
        """Return the losses of the original with rounding noise on its parameters; empty: it failed."""

    def fits(self, num_arms: int) -> bool:
        """Whether so many arms can be alive at once."""

    def close(self) -> None:
        """End everything that is still alive."""
