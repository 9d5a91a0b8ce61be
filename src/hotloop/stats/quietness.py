"""Whether the machine was quiet enough to believe what was measured: one limit for every block, run and figure."""

from __future__ import annotations

BUSY = 0.10
"""Share of the CPU, or of a device, that others may take: under it, comparisons on two cores held."""
TOO_BUSY = 0.25
"""With one of two cores taken by others, programs were seen 5 to 25 times slower: nothing can be said. With a quarter
of the machine they are slower by a factor, too."""
FAIR_SHARE = 2.0
"""Times the usual step: what a neighbour takes that keeps one of two cores busy. Beyond it threads wait at barriers for
one that has no core: a step of 11 ms took 200."""
MANY_DISTURBED = 0.10
"""Of the blocks: with so many repeated or kept as they were, a budget buys a good deal less."""


def is_busy(foreign_share: float | None) -> bool:
    """Whether others disturb what is measured; False where their share is not known."""
    return foreign_share is not None and foreign_share > BUSY


def is_too_busy(foreign_share: float | None) -> bool:
    """Whether no sentence about the program can be trusted."""
    return foreign_share is not None and foreign_share >= TOO_BUSY
