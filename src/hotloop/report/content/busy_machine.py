"""Whether the machine was quiet enough to believe what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.quantities import percent
from hotloop.report.document import Tile
from hotloop.stats.quietness import is_busy, is_too_busy


def busy_machine(foreign_share: float | None) -> tuple[str, ...]:
    """Return the warning that has to stand first; empty: the machine was quiet, or nobody could tell.

    Args:
        foreign_share: of the processor time, that of other processes meanwhile.
    """
    if foreign_share is None or not is_busy(foreign_share):
        return ()
    used = f"other processes used {foreign_share:.0%} of the CPU while your program was measured"
    if is_too_busy(foreign_share):
        return (
            f"This machine was too busy to judge: {used}. Every time below is too long, and the shares may be wrong. "
            "Stop them (`hotloop machine` names them) and measure again.",
        )
    return (f"Read with care: {used}, so the times below are too long.",)


def busy_tile(foreign_share: float | None) -> Iterator[Tile]:
    """Yield the share of the CPU that others used, where it disturbs what is shown."""
    if foreign_share is not None and is_busy(foreign_share):
        value = percent(foreign_share)
        yield Tile(name="used by other processes", value=value, detail="of the CPU, meanwhile", good=False)
