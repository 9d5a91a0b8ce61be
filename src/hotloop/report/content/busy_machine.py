"""Whether the machine was quiet enough to believe what was measured."""

from __future__ import annotations

from hotloop.stats.quietness import BUSY, TOO_BUSY


def busy_machine(foreign_share: float | None) -> tuple[str, ...]:
    """Return the warning that has to stand first; empty: the machine was quiet, or nobody could tell.

    Args:
        foreign_share: of the processor time, that of other processes meanwhile.
    """
    if foreign_share is None or foreign_share < BUSY:
        return ()
    used = f"other processes used {foreign_share:.0%} of the CPU while your program was measured"
    if foreign_share >= TOO_BUSY:
        return (
            f"This machine was too busy to judge: {used}. Every time below is too long, and the shares may be wrong. "
            "Stop them (`hotloop machine` names them) and measure again.",
        )
    return (f"Read with care: {used}, so the times below are too long.",)
