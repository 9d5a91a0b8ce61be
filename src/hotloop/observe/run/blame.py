"""Whose failure it was: a program that failed with the probe inside is tried once without it, then without anything.

Two further runs, because each can acquit one part alone. The first has the same isolation and no probe. The second has
nothing of ours: no namespace, no overlay, no `sitecustomize`, no variable but a temporary folder. The kernel denies it
writes and connections (Landlock), so it may run with the user's own files; where that made a difference, its last words
differ from the first run's, and nothing is claimed.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from hotloop.launch.environment import quiet
from hotloop.launch.isolation.decide import (
    Exceptions,
    Isolation,
    could_not_enter,
    denied_alone,
    plan_isolation,
)
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.isolation.signs import sign_of_isolation
from hotloop.launch.log_tail import last_words
from hotloop.launch.process import Run, start
from hotloop.launch.readers import STDOUT, nobody_reads

LONGEST_S = 120.0
"""A program that failed later than this is not tried again: the user would wait as long again."""
PATIENCE, MOST_S = 3.0, 60.0
"""Times what it took to fail, and seconds more at most: neighbours may have become busy meanwhile."""
POLL_S = 0.2
_ENDED_BY_HAND = (130, 143)
"""Exit codes of Ctrl-C and of a request to end."""


def may_be_ours(run: Run, code: int | None, lived_s: float, stdout: int = STDOUT) -> bool:
    """Whether to ask: a program that had imported torch failed by itself, and soon."""
    if nobody_reads(stdout):  # it printed into a closed pipe, and fails so without hotloop, too
        return False
    ran = any((run.scratch / "probe").glob("torch-*")) and not could_not_enter(code, run.scratch)
    return ran and code not in (None, 0, *_ENDED_BY_HAND) and lived_s <= LONGEST_S


class Means(NamedTuple):
    """What programs are started with and waited for by, and the isolation that only denies."""

    start: Callable[..., Run] = start
    denied_alone: Callable[[Sequence[str], Path], Isolation | None] = denied_alone
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


MEANS = Means()


class _Ending(NamedTuple):
    """How a further run ended.

    Attributes:
        code: its exit code; None: it had not failed in time, and was ended.
        log: the end of its output.
        patience_s: how long it had.
    """

    code: int | None
    log: str
    patience_s: float


def whose(
    argv: Sequence[str],
    environment: Mapping[str, str],
    exceptions: Exceptions,
    failed: int,
    lived_s: float,
    note: Callable[[str], None],
    say: Callable[[str], None],
    limit_s: float,
    isolation: Isolation | None = None,
    means: Means = MEANS,
) -> str:
    """Run the command without the probe, then without the isolation too, and say whose failure it was.

    Args:
        argv: the command.
        environment: the user's.
        exceptions: what it may write to.
        failed: its exit code with the probe inside.
        lived_s: how long it took to fail.
        note: told before that it runs again, and what becomes of its writes.
        say: told of the wait.
        limit_s: for this run.
        isolation: of the run that failed; None: it is planned again.
        means: to run it.
    """
    same = isolation or plan_isolation(
        argv, Path.cwd(), scratch_root(), network=not exceptions.network, exceptions=exceptions
    )
    note(
        f"your program failed (exit code {failed}); running it again without hotloop's hooks, and, if that "
        f"fails too, without its isolation, to see what the cause is: its output is not shown, and {_its_writes(same)}"
    )
    patience_s = min(PATIENCE * lived_s, lived_s + MOST_S) + 10.0
    until_s = means.clock() + limit_s
    unhooked = _run(
        argv, lambda scratch: quiet(environment, scratch), same, min(patience_s, limit_s), say, means
    )
    if unhooked.code is None or unhooked.code == 0:
        return _ours(unhooked, "hooks")
    alone = Isolation() if exceptions.all_writes else means.denied_alone(argv, Path.cwd())
    if alone is None:
        return _not_judged(argv, unhooked, same, "the kernel cannot keep its writes away here")
    left_s = until_s - means.clock()
    if left_s < lived_s:
        return _not_judged(argv, unhooked, same, "no time was left (--seconds)")
    free = _run(
        argv,
        lambda scratch: {**environment, **_temporary(alone, scratch)},
        alone,
        min(patience_s, left_s),
        say,
        means,
    )
    if free.code == 0:
        return _ours(free, "isolation")
    if free.code == unhooked.code and _said(free) == _said(unhooked):
        return _its_own(failed, unhooked)
    return _not_judged(argv, unhooked, same, "with its writes denied it fails otherwise")


def _run(
    argv: Sequence[str],
    environment: Callable[[Path], Mapping[str, str]],
    isolation: Isolation,
    patience_s: float,
    say: Callable[[str], None],
    means: Means,
) -> _Ending:
    scratch = new_scratch("alone")
    try:
        run = means.start(argv, environment(scratch), isolation, scratch, log=scratch / "output.log")
        try:
            code = _ending(run, patience_s, say, means)
        finally:
            run.end()
        return _Ending(code, run.log_end(), patience_s)
    finally:
        remove(scratch)


def _temporary(isolation: Isolation, scratch: Path) -> dict[str, str]:
    """The one variable of a run that may write nowhere else: libraries need a temporary folder."""
    if not isolation.denied:
        return {}
    folder = scratch / "tmp"
    folder.mkdir()
    return {"TMPDIR": str(folder)}


def _said(ending: _Ending) -> str:
    """What a program ended with, without numbers: addresses and times differ from run to run."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", last_words(ending.log))


def _ours(ending: _Ending, part: str) -> str:
    if ending.code is None:
        return (
            f"without hotloop's {part} it had not failed after {ending.patience_s:.0f} s and was ended: the failure "
            f"may be hotloop's. If your program works without hotloop, {_report()}"
        )
    return f"without hotloop's {part} it ends well: THE FAILURE IS HOTLOOP'S, not your program's; {_report()}"


def _its_own(failed: int, ending: _Ending) -> str:
    if ending.code == failed:
        return (
            f"it fails without anything of hotloop's too, with the same exit code {failed}: the failure is the "
            "program's own"
        )
    return (
        f"it fails without anything of hotloop's too, but with exit code {ending.code} instead of {failed}: look at "
        "the program first"
    )


def _not_judged(argv: Sequence[str], unhooked: _Ending, isolation: Isolation, why: str) -> str:
    """Say what is known, and claim nothing: a run in the same isolation cannot acquit the isolation."""
    sign = sign_of_isolation(unhooked.log, isolation)
    if sign is not None:
        return sign
    words = last_words(unhooked.log)
    ended = f", and its last words are: {words}" if words else ""
    return (
        f"it fails without hotloop's hooks too (exit code {unhooked.code}){ended}. Whether hotloop's isolation is the "
        f"cause was not judged ({why}); if it works without hotloop, {_report()}. Try: {shlex.join(argv)}"
    )


def _its_writes(isolation: Isolation) -> str:
    """Say what becomes of what the run without the probe writes."""
    if isolation.uncovered is not None:
        return "it may change your files, as before (--allow-writes)"
    excepted = f", but not in {', '.join(isolation.writable)}" if isolation.writable else ""
    return f"what it writes is thrown away{excepted}"


def _ending(run: Run, patience_s: float, say: Callable[[str], None], means: Means) -> int | None:
    """Return how it ended; None: it still ran when it had long since failed with the probe inside, and is ended."""
    began = means.clock()
    while run.exit_code() is None and means.clock() - began < patience_s:
        say("running your program without hotloop, to see whether it is the cause of the failure")
        means.sleep(POLL_S)
    return run.exit_code()


def _report() -> str:
    return (
        "please report it: the command, the end of the output above, "
        f"hotloop {version('hotloop')}, and the versions of Python and torch (hotloop machine)"
    )
