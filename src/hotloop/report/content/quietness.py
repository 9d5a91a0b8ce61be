"""What is said of a peak that was measured beside other processes."""

from __future__ import annotations

from hotloop.stats.quietness import BUSY


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
