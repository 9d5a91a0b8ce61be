"""The most that other processes can have cost a measured run."""

from __future__ import annotations

SHARED_HARDWARE = 2.0
"""Two threads of one core, or two cores at one memory, have half of it each: no clock of the kernel shows that."""
WORST_SEEN = 25.0
"""Where the kernel does not tell how long threads waited: two-thread programs whose OpenMP barriers spin were seen 5 to
25 times slower beside a process that kept one of two cores busy."""


def least_alone(delay_ratio: float | None) -> float:
    """Return the share of a measured time that a run would have taken alone, at the least.

    A step can be delayed by no more than the time in which threads of the program had no core, whatever waited for
    them, however it waited: that is taken off, and then half, for hardware that is shared.

    Args:
        delay_ratio: seconds a second in which threads of the program were ready to run and had no core; None: not told.
    """
    if delay_ratio is None:
        return 1 / WORST_SEEN
    return max(0.0, 1 - delay_ratio) / SHARED_HARDWARE
