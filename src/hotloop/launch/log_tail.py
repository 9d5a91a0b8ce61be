"""Why a program ended, from the end of its output."""

from __future__ import annotations

import re

_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration)(?::|$)")


def last_words(log_end: str) -> str:
    """Return the exception that a program's output ends with, else its last line; empty: it printed nothing.

    Progress bars and launchers print after the traceback.

    Args:
        log_end: the last lines of its output.
    """
    lines = [" ".join(line.split()) for line in log_end.splitlines() if line.strip()]
    raised = [line for line in lines if _EXCEPTION.match(line)]
    return (raised or lines or [""])[-1]
