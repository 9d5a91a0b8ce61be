"""The time budget of one command: every stage asks it how long it may take."""

from __future__ import annotations

import math
import time
from typing import Protocol

from hotloop.model.observation import NO_TIME

CLOSING_S, CLOSING_SHARE = 3.0, 0.1
"""Kept back for ending the program and writing the result; of a short budget no more than a tenth."""


class Clock(Protocol):
    """Where the time comes from; tests have one of their own."""

    def now(self) -> float:
        """Return seconds of the machine's monotonic clock."""

    def sleep(self, seconds: float) -> None:
        """Let so much time go by."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Return its seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()


class Deadline:
    """The end of a budget of wall time.

    Args:
        seconds: the budget; infinite: there is none.
        option: the option that sets it, for messages.
        clock: where the time comes from.
        spent_s: of the budget, by now.
    """

    def __init__(
        self, seconds: float, option: str = "--seconds", clock: Clock = SYSTEM_CLOCK, spent_s: float = 0.0
    ) -> None:
        self.seconds = seconds
        self.clock = clock
        self._option = option
        self._end_s = clock.now() + seconds - spent_s
        self._closing_s = min(CLOSING_S, CLOSING_SHARE * seconds) if math.isfinite(seconds) else 0.0

    def left_s(self) -> float:
        """Return what is left for measuring, never below 0."""
        return max(0.0, self._end_s - self._closing_s - self.clock.now())

    def closing_s(self) -> float:
        """Return what is left for ending the program, never below 0."""
        return max(0.0, self._end_s - self.clock.now())

    def is_over(self) -> bool:
        """Whether nothing more may be measured."""
        return self.left_s() <= 0.0

    def share_s(self, num_stages: int, later_s: float | None = None) -> float:
        """Return an equal part of what is left, for the first of several stages.

        Args:
            num_stages: that share the time, the asking one included.
            later_s: what one more stage after them needs before it tells anything. It gets that and an equal part, or
                nothing where its needs exceed its part.
        """
        left_s = self.left_s()
        if later_s is not None and later_s < left_s / (num_stages + 1):
            return (left_s - later_s) / (num_stages + 1)
        return left_s / num_stages

    def earlier(self, seconds: float) -> Deadline:
        """Return the deadline of a stage that may take so long, and never longer than this one."""
        stage = Deadline(self.seconds, self._option, self.clock)
        stage._closing_s = self._closing_s
        stage._end_s = min(self._end_s, self.clock.now() + seconds + self._closing_s)
        return stage

    @property
    def no_time(self) -> str:
        """Why something was not measured, in words."""
        return f"{NO_TIME} ({self._option} {self.seconds:g})"

    @property
    def hint(self) -> str:
        """What to do about it, in words."""
        return f"give it more time: {self._option} {2 * self.seconds:g}"


def endless() -> Deadline:
    """Return a deadline that never comes."""
    return Deadline(math.inf)
