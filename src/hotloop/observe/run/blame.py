"""Whose failure it was: a program that failed with the probe inside is tried once without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from hotloop.launch.environment import quiet
from hotloop.launch.isolation.decide import Exceptions, Isolation, could_not_enter, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.process import Run, start
from hotloop.launch.readers import nobody_reads

LONGEST_S = 120.0
"""A program that failed later than this is not tried again: the user would wait as long again."""
PATIENCE, MOST_S = 3.0, 60.0
"""Times what it took to fail, and seconds more at most: neighbours may have become busy meanwhile."""
POLL_S = 0.2
_ENDED_BY_HAND = (130, 143)
"""Exit codes of Ctrl-C and of a request to end."""


def may_be_ours(run: Run, code: int | None, lived_s: float) -> bool:
    """Whether to ask: a program that had imported torch failed by itself, and soon."""
    if nobody_reads():  # it printed into a closed pipe, and fails so without hotloop, too
        return False
    ran = any((run.scratch / "probe").glob("torch-*")) and not could_not_enter(code, run.scratch)
    return ran and code not in (None, 0, *_ENDED_BY_HAND) and lived_s <= LONGEST_S


def whose(
    argv: Sequence[str],
    environment: Mapping[str, str],
    exceptions: Exceptions,
    failed: int,
    lived_s: float,
    note: Callable[[str], None],
    say: Callable[[str], None],
    limit_s: float,
) -> str:
    """Run the command without the probe, as isolated as before, and say whose failure it was.

    Args:
        argv: the command.
        environment: the user's.
        exceptions: what it may write to.
        failed: its exit code with the probe inside.
        lived_s: how long it took to fail.
        note: told before that it runs again, and what becomes of its writes.
        say: told of the wait.
        limit_s: for this run.
    """
    scratch = new_scratch("alone")
    try:
        isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=False, exceptions=exceptions)
        note(
            f"your program failed (exit code {failed}); running it once more without hotloop's hooks, to see whether "
            f"they are the cause: its output is not shown, and {_its_writes(isolation)}"
        )
        run = start(argv, quiet(environment, scratch), isolation, scratch, log=scratch / "output.log")
        try:
            patience_s = min(min(PATIENCE * lived_s, lived_s + MOST_S) + 10.0, limit_s)
            code = _ending(run, patience_s, say)
        finally:
            run.end()
    finally:
        remove(scratch)
    if code is None:
        return (
            f"without hotloop it had not failed after {patience_s:.0f} s and was ended: the failure may be hotloop's. "
            f"If your program works without hotloop, {_report()}"
        )
    return _verdict(failed, code)


def _its_writes(isolation: Isolation) -> str:
    """Say what becomes of what the run without the probe writes."""
    if isolation.uncovered is not None:
        return "it may change your files, as before (--allow-writes)"
    excepted = f", but not in {', '.join(isolation.writable)}" if isolation.writable else ""
    return f"what it writes is thrown away{excepted}"


def _ending(run: Run, patience_s: float, say: Callable[[str], None]) -> int | None:
    """Return how it ended; None: it still ran when it had long since failed with the probe inside, and is ended."""
    began = time.monotonic()
    while run.exit_code() is None and time.monotonic() - began < patience_s:
        say("running your program without hotloop's hooks, to see whether they are the cause of the failure")
        time.sleep(POLL_S)
    return run.exit_code()


def _verdict(failed: int, code: int) -> str:
    if code == failed:
        return (
            f"it fails without hotloop too, with the same exit code {code}: the failure is the program's own"
        )
    if code:
        return f"it fails without hotloop too, but with exit code {code} instead of {failed}: look at the program first"
    return f"without hotloop it ends well: THE FAILURE IS HOTLOOP'S, not your program's; {_report()}"


def _report() -> str:
    return (
        "please report it: the command, the end of the output above, "
        f"hotloop {version('hotloop')}, and the versions of Python and torch (hotloop machine)"
    )
