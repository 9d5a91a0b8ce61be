"""Whether the machine was quiet enough to believe what was measured, said before anything else."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

TOO_BUSY = 0.25
"""With one of two cores taken by others, programs were seen 5 to 25 times slower: nothing can be said. With a quarter
of the machine they are slower by a factor, too."""
BUSY = 0.10
"""Under 10% of the machine was a workable limit for comparisons."""
_STYLE = "bold yellow"


def busy_machine(foreign_share: float | None) -> Iterator[RenderableType]:
    """Yield the warning that has to stand first; nothing where the machine was quiet or nobody could tell.

    Args:
        foreign_share: of the processor time, that of other processes meanwhile.
    """
    if foreign_share is None or foreign_share < BUSY:
        return
    used = f"other processes used {foreign_share:.0%} of the CPU while your program was measured"
    if foreign_share >= TOO_BUSY:
        yield Text(
            f"This machine was too busy to judge: {used}. Every time below is too long, and the shares may be wrong. "
            "Stop them (`hotloop machine` names them) and measure again.",
            style=_STYLE,
        )
    else:
        yield Text(f"Read with care: {used}, so the times below are too long.", style=_STYLE)
    yield Text("")


def is_too_busy(foreign_share: float | None) -> bool:
    """Whether no sentence about the program can be trusted."""
    return foreign_share is not None and foreign_share >= TOO_BUSY
