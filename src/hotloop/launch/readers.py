"""Whether anybody still reads what is printed."""

from __future__ import annotations

import select

STDOUT = 1


def nobody_reads(descriptor: int = STDOUT) -> bool:
    """Whether a descriptor is a pipe whose reader is gone (`| head -1`); False where that cannot be told."""
    try:
        poll = select.poll()
        poll.register(descriptor, 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, AttributeError):  # no such descriptor, no such system call
        return False
