"""What a session of trials is for, and what came of it."""

from __future__ import annotations

from enum import Enum

import msgspec

from hotloop.model.ratio import Ratio

MAX_SLOWDOWN = 0.3
"""Of a step, where memory is the goal: recomputing activations is quoted at 20 to 30% of the time for half of the
memory (Chen et al. 2016, arXiv:1604.06174: one more forward, about a third of a step)."""


class Goal(str, Enum):
    """What a plan is for."""

    SPEED = "speed"
    MEMORY = "memory"
    COST = "cost"


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants of a plan."""

    goal: Goal = Goal.SPEED
    fit_bytes: int | None = None
    """The fastest plan whose peak is no larger; None: no limit."""
    max_slowdown: float = MAX_SLOWDOWN
    """Where memory is the goal: how much longer a step may take, relative."""
    price_per_hour: float | None = None
    """Of this machine."""
    power_price: float | None = None
    """Of a kWh."""

    @property
    def counts_memory(self) -> bool:
        """Whether trials are judged by their memory, too."""
        return self.goal is Goal.MEMORY or self.fit_bytes is not None


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that was measured: its time against its memory."""

    names: tuple[str, ...]
    """What is on; empty: the program as it was."""
    step_s: float
    peak_bytes: int
    num_sets: int
    optimal: bool
    """No other one is both as fast and as small (Pareto)."""
    chosen: bool = False


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What training costs."""

    unit: str
    """`epoch`, or `1000 steps` where the length of an epoch is not known."""
    before: float
    after: float | None
    """None: nothing was proven."""
    watts: float | None
    """Of the observed run; None: not measured, or the price of power was not given."""
    method: str


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a goal."""

    method: str = ""
    """How memory was measured; empty: it was not."""
    peak_bytes: tuple[int | None, int | None] = (None, None)
    """Of the original and of the plan: the largest over all sets of fresh processes."""
    memory: Ratio | None = None
    """Peak before over peak after, over sets; None: nothing was proven, or it was not measured."""
    fits: bool | None = None
    """Whether the plan, or the program as it is where the plan is empty, stays within the limit; None: no limit."""
    smallest: Point | None = None
    """The smallest of all points that were measured and not refused."""
    points: tuple[Point, ...] = ()
    """By memory, the largest first."""
    cost: Cost | None = None
