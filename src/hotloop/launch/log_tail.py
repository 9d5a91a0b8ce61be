"""Why a program ended, from the end of its output."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RANK = re.compile(r"\[(?:rank|default)\d+\]:\s*")
"""What torch, and torchrun with --tee, put before the lines of a rank."""
_OF_LAUNCHER = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
"""torchrun's own, after the exception of the rank that failed."""
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration)(?::|$)")


def without_report(lines: Sequence[str]) -> list[str]:
    """Return the lines of an output without torchrun's report on the ranks that failed: what they said is before it."""
    raised = next((at for at, line in enumerate(lines) if line.startswith(_OF_LAUNCHER)), None)
    if raised is None:
        return list(lines)
    begin = max((at for at in range(raised) if lines[at].startswith("Traceback")), default=raised)
    end = max((at for at in range(raised, len(lines)) if lines[at].startswith("====")), default=raised)
    return [*lines[:begin], *lines[end + 1 :]]


def last_words(log_end: str) -> str:
    """Return the exception that a program's output ends with, else its last line; empty: it printed nothing.

    Progress bars and launchers print after the traceback.

    Args:
        log_end: the last lines of its output.
    """
    lines = [" ".join(_RANK.sub("", line).split()) for line in log_end.splitlines() if line.strip()]
    raised = [line for line in lines if _EXCEPTION.match(line) and not line.startswith(_OF_LAUNCHER)]
    return (raised or lines or [""])[-1]
