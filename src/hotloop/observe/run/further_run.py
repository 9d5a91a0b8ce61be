"""One more run of the program, in which the instruments look from its first steps on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hotloop.launch.deadline import Deadline
from hotloop.launch.environment import in_own_network, probed, quiet, without_profiler_logs
from hotloop.launch.isolation.decide import Exceptions, guard_orders, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.log_tail import last_words
from hotloop.launch.process import Run, start
from hotloop.observe.build import leading
from hotloop.observe.decode.spans import timelines
from hotloop.observe.profile.memory_snapshot import keep_snapshot
from hotloop.observe.profile.profile import Seen, read_seen
from hotloop.observe.profile.windows import Course, Ending, orders, run_course
from hotloop.observe.run.looks import Look
from hotloop.observe.run.pace import Pace
from hotloop.observe.run.stop import end_at_boundary
from hotloop.observe.steps.step_windows import boundaries
from hotloop.probe.control.control_page import GO_UNTIL, STATE, UNLIMITED, WAITING, ControlPage
from hotloop.probe.process.config import ProbeConfig

POLL_S = 0.02


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """How the program is run again.

    Attributes:
        argv: the resolved command.
        environment: the user's, with the changes that the first run had.
        exceptions: what of the user's files the program may change.
        uses_network: it needs more than this machine.
        known: every instrument that the probe is told of.
        pace: of the first run.
        deadline: of all further runs.
        snapshot: where a snapshot of memory for torch's viewer goes; None: none is made.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    exceptions: Exceptions
    uses_network: bool
    known: tuple[str, ...]
    pace: Pace
    deadline: Deadline
    snapshot: Path | None = None


def run_again(again: Again, names: Sequence[str], scale: float, progress: Callable[[str], None]) -> Look:
    """Run the program once more; return what some of the instruments saw in it.

    Args:
        again: how it is run.
        names: the instruments, the ones that matter most first.
        scale: what part of their usual seconds they look.
        progress: told of what goes on.
    """
    scratch = new_scratch("look")
    try:
        folder = scratch / "probe"
        folder.mkdir()
        page = ControlPage.create(folder / "control", go_until=again.pace.short_warm_up)
        run = _start(again, folder, scratch)
        begin_s = time.monotonic()
        try:
            ending = _look(again, run, folder, page, (names, scale), progress)
            code = end_at_boundary(run, page, again.deadline)
            last = last_words(run.log_end()) if code else ""
        finally:
            run.end()
            page.close()
        return _read(again, folder, names, ending, code, time.monotonic() - begin_s, last)
    finally:
        remove(scratch)


def _start(again: Again, folder: Path, scratch: Path) -> Run:
    isolation = plan_isolation(
        again.argv, Path.cwd(), scratch_root(), network=not again.uses_network, exceptions=again.exceptions
    )
    anchor = again.pace.anchor
    told = scratch / "probe.json"
    ProbeConfig(
        folder=str(folder),
        anchor=(anchor.kind, anchor.slot, anchor.every),
        lean=False,
        device_clock=True,
        instruments=orders(again.known),
        memory_snapshot=again.snapshot is not None,
        **guard_orders(isolation, scratch),
    ).save(told)
    variables = without_profiler_logs(quiet(again.environment, scratch))
    if isolation.network:
        variables = in_own_network(variables)
    return start(again.argv, probed(variables, told), isolation, scratch, log=scratch / "log")


def _look(
    again: Again,
    run: Run,
    folder: Path,
    page: ControlPage,
    wanted: tuple[Sequence[str], float],
    progress: Callable[[str], None],
) -> Ending:
    """Wait until the program has warmed up, then put one instrument after the other to use."""
    progress("detailed profiling: starting the program again")
    clock = again.deadline.clock
    while not any(row[STATE] == WAITING for row in page.rows()):
        if run.exit_code() is not None:
            return Ending.EXIT
        if again.deadline.is_over():
            return Ending.NO_TIME
        clock.sleep(POLL_S)
    lead = leading(timelines(folder, {}))
    if lead is None:
        return Ending.EXIT
    course = Course(
        names=tuple(wanted[0]),
        scale=wanted[1],
        known=again.known,
        anchor=again.pace.anchor,
        step_s=again.pace.step_s,
        lead=lead.pid,
        deadline=again.deadline,
        restart_s=again.pace.startup_s,
    )
    return run_course(run, page, course, progress, ready=lambda: _let_go(page))


def _let_go(page: ControlPage) -> None:
    page.numbers[GO_UNTIL] = UNLIMITED


def _read(
    again: Again,
    folder: Path,
    names: Sequence[str],
    ending: Ending,
    code: int | None,
    wall_s: float,
    last: str,
) -> Look:
    lead = leading(timelines(folder, {}))
    seen = read_seen(folder, lead, names) if lead is not None else Seen({}, frozenset(), {})
    keep_snapshot(folder, lead, seen, again.snapshot)
    return Look(
        values=seen.values,
        cut=seen.cut,
        refused=seen.refused,
        ending=ending,
        wall_s=wall_s,
        num_steps=len(boundaries(lead, again.pace.anchor)) if lead is not None else None,
        exit_code=code,
        last_words=last,
    )
