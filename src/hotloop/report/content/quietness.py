"""Whether the machine was quiet enough to believe what was measured."""

from __future__ import annotations

TOO_BUSY = 0.25
"""With one of two cores taken by others, programs were seen 5 to 25 times slower: nothing can be said. With a quarter
of the machine they are slower by a factor, too."""
BUSY = 0.10
"""Under 10% of the machine was a workable limit for comparisons."""


def is_too_busy(foreign_share: float | None) -> bool:
    """Whether no sentence about the program can be trusted."""
    return foreign_share is not None and foreign_share >= TOO_BUSY


def peak_caveat(foreign_share: float | None) -> str:
    """Return why the machine's peak is too low, to follow it; empty: it was measured in quiet, or nobody looked.

    Args:
        foreign_share: of the CPU, what others used when the peak was measured.
    """
    if foreign_share is None or foreign_share <= BUSY:
        return ""
    return (
        f"; that peak is too low, for other processes used {foreign_share:.0%} of the CPU when it was measured "
        "(hotloop machine --fresh measures it again)"
    )
