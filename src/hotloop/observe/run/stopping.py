"""When an observation has seen enough."""

from __future__ import annotations

import msgspec

MIN_STEPS = 20
"""Steps of a default observation at least: a median's 95% interval then spans the middle half of them."""
MIN_SECONDS = 8.0
MAX_SECONDS = 60.0
"""A default observation of a slow program ends here once it has `FEW_STEPS`."""
FEW_STEPS = 5
PATIENCE = 3.0
"""Times the seconds that are asked for: a program that does something else between steps, evaluate or draw, is not
waited for any longer on the clock."""


class StopRule(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured, warm-up not counted.

    Attributes:
        steps: exactly so many steps; None: not asked for.
        seconds: so many seconds; None: not asked for.
        few: steps at least, beside the seconds.
        full: the program runs to its end.
        lasting: for as long as the command's time budget allows.
    """

    steps: int | None = None
    seconds: float | None = None
    few: int = 1
    full: bool = False
    lasting: bool = False

    def enough(self, num_steps: int, measured_s: float, elapsed_s: float = 0.0) -> bool:
        """Whether the program can be ended at its next step boundary.

        Args:
            num_steps: measured.
            measured_s: that they took.
            elapsed_s: from the first one to now, with all that was between them and since.
        """
        if self.full or self.lasting:
            return False
        if self.steps is not None:
            return num_steps >= self.steps
        if num_steps >= MIN_STEPS and elapsed_s >= PATIENCE * self.least_s:
            return True
        if self.seconds is not None:
            return num_steps >= self.few and measured_s >= self.seconds
        if measured_s >= MAX_SECONDS:
            return num_steps >= FEW_STEPS
        return num_steps >= MIN_STEPS and measured_s >= MIN_SECONDS

    @property
    def least_s(self) -> float:
        """Seconds that are measured at least, where it is seconds that count."""
        return MIN_SECONDS if self.seconds is None else self.seconds
