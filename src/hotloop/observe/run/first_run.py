"""Run the user's command with the probe inside, measure its steps, look closer, and end it at a step boundary."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from hotloop.launch.command import script_of
from hotloop.launch.deadline import Deadline, endless
from hotloop.launch.environment import in_own_network, probed, quiet, with_changes, without_profiler_logs
from hotloop.launch.isolation.decide import Exceptions, Isolation, guard_orders, plan_isolation
from hotloop.launch.isolation.keep_outputs import keep_writes
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.process import Run, start
from hotloop.machine.host.identity import identity
from hotloop.machine.monitor.monitor import Monitor
from hotloop.model.observation import Observation
from hotloop.model.out_of_memory import OutOfMemory
from hotloop.observe.build import build, leading
from hotloop.observe.coverage import no_step, with_gaps
from hotloop.observe.decode.spans import timelines
from hotloop.observe.profile.late_lines import with_late_lines
from hotloop.observe.profile.memory_snapshot import keep_snapshot
from hotloop.observe.profile.profile import Seen, read_seen
from hotloop.observe.profile.windows import Ending, by_worth, orders
from hotloop.observe.run.blame import may_be_ours, whose
from hotloop.observe.run.looks import Look
from hotloop.observe.run.monitoring import INTERVAL_S, largest_process, with_monitors
from hotloop.observe.run.network_use import NetworkUse
from hotloop.observe.run.out_of_memory import Failure, caught, out_of_memory, ran_out
from hotloop.observe.run.pace import Pace, pace_of
from hotloop.observe.run.stop import end_at_boundary
from hotloop.observe.run.stopping import StopRule
from hotloop.observe.run.watch import Watch, Wishes
from hotloop.probe.control.control_page import LOST, ControlPage
from hotloop.probe.memory_failure.room import kernel_kills
from hotloop.probe.memory_failure.words import NUM_LINES
from hotloop.probe.process.config import ProbeConfig

Progress = Callable[[str], None]


class Interrupted(Exception):  # noqa: N818 - carries what was measured until then
    """The user pressed Ctrl-C."""

    def __init__(self, observation: Observation | None) -> None:
        super().__init__("interrupted")
        self.observation = observation


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """How to run a command for observation.

    Attributes:
        words: what the user typed.
        rule: when it has been seen enough.
        log: where the program's output goes; None: to the user's terminal.
        deadline: by which all of it is done; None: there is none.
        later: from the start-up and the step in seconds, what a stage after the observation needs at least of the time
            before the deadline; None: there is none.
        changes: environment variables on top of the user's.
        record: False switches the phase timers off (the overhead benchmark).
        deep: the profilers to look with, in windows of their own, once it has been seen enough.
        snapshot: where a snapshot of memory for torch's viewer goes; None: none is made.
        keep: where the files go that a whole run (`rule.full`) wrote; None: nowhere.
        exceptions: what of the user's files the program may change.
        warn: told before the start what cannot be covered.
        note: told what is to stay on the screen; None: it is progress.
        details: told what the run looks like, again and again; None: nobody looks.
    """

    words: tuple[str, ...]
    rule: StopRule
    log: Path | None = None
    deadline: Deadline | None = None
    later: Callable[[float, float], float] | None = None
    changes: dict[str, str] = {}
    record: bool = True
    deep: tuple[str, ...] = ()
    snapshot: Path | None = None
    keep: Path | None = None
    exceptions: Exceptions = Exceptions()
    warn: Callable[[str], None] | None = None
    note: Callable[[str], None] | None = None
    details: Callable[[Sequence[str]], None] | None = None


class FirstRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run in which the program's steps are measured undisturbed.

    Attributes:
        observation: of it, without what the instruments saw.
        names: the instruments that are wanted, the ones that matter most first.
        look: what they saw in it.
        pace: of the program; None: it took no step.
        covered: the program can be kept from the user's files.
        interrupted: the user ended it.
    """

    observation: Observation
    names: tuple[str, ...]
    look: Look
    pace: Pace | None
    covered: bool
    interrupted: bool


def first_run(
    live: LiveRun, argv: Sequence[str], progress: Progress, environment: Mapping[str, str] = os.environ
) -> FirstRun:
    """Run the command and measure its steps; look closer where it goes on after that.

    Raises:
        HotloopError: the command cannot be run.
        NoStepError: it runs no Python with torch, or took no step.
        NeedsNetwork: it failed, or waited, because other machines were out of reach.
    """
    scratch = new_scratch("observe")
    try:
        return _first_run(live, argv, scratch, progress, environment)
    finally:
        remove(scratch)


def _first_run(
    live: LiveRun, argv: Sequence[str], scratch: Path, progress: Progress, environment: Mapping[str, str]
) -> FirstRun:
    folder = scratch / "probe"
    folder.mkdir()
    page = ControlPage.create(folder / "control")
    isolation = _isolation(live, argv)
    variables = _variables(live, scratch, folder, isolation, environment)
    deadline = live.deadline or endless()
    begin_s, kills = time.monotonic(), kernel_kills()
    run = start(argv, variables, isolation, scratch, log=live.log)
    wishes = Wishes(rule=live.rule, deep=live.deep, later=live.later, details=live.details)
    network = NetworkUse(run, isolation, asked_for=live.exceptions.network)
    watch = Watch(wishes, deadline, run, folder, page, progress, begin_s, network)
    try:
        with Monitor((os.getpid(),), interval_s=INTERVAL_S) as monitor:
            watch.monitor = monitor
            interrupted = _interrupted(watch)
            exit_code = end_at_boundary(run, page, deadline, interrupted=interrupted)
            end_s = time.monotonic()
        lost = any(row[LOST] for row in page.rows())
    finally:
        run.end()
        page.close()
        if live.keep is not None and live.rule.full:
            keep_writes(scratch, live.keep, Path.cwd())
    network.check(exit_code, waited=watch.waits_for_network)
    known = timelines(folder, watch.known)
    failure = Failure(
        folder=folder,
        code=exit_code or 0,
        lived_s=end_s - begin_s,
        largest_bytes=largest_process(monitor.columns),
        num_kills=None if kills is None else (kernel_kills() or 0) - kills,
        lead=leading(known),
        log_end=run.log_end(NUM_LINES, report=True),
    )
    no_memory = _no_memory(live, argv, environment, isolation, failure, progress)
    blame = None
    if no_memory is None:
        blame = _blame(live, argv, environment, run, isolation, exit_code, end_s - begin_s, progress)
        blame = _with_hint(blame, network, exit_code)
    observation = build(
        live.words,
        folder,
        known,
        script=script_of(argv),
        machine=msgspec.to_builtins(identity()),
        begin_s=begin_s,
        end_s=end_s,
        exit_code=exit_code,
        uses_network=network.reaches_out,
        foreign_share=watch.foreign_share,
        steal_share=watch.steal_share,
    )
    too_short = deadline.no_time if watch.cut_short and exit_code is None else None
    observation = with_gaps(observation, isolation, lost=lost, interrupted=interrupted, too_short=too_short)
    observation = msgspec.structs.replace(observation, out_of_memory=no_memory)
    observation = with_late_lines(observation, folder, known)
    observation = with_monitors(observation, monitor.columns, monitor.errors, known, begin_s, watch.lead_pid)
    if observation.step is None and not interrupted:
        late = deadline if watch.timed_out else None
        raise no_step(observation, run, folder, known, argv, late=late, lost=lost, blame=blame)
    if live.warn is not None:
        for told in filter(None, (blame, caught(failure))):
            live.warn(f"hotloop: {told}")
    lead = leading(known)
    pace = pace_of(lead, begin_s)
    names = by_worth(live.deep, pace.phases if pace is not None else {})
    seen = read_seen(folder, lead, names) if lead is not None else Seen({}, frozenset(), {})
    keep_snapshot(folder, lead, seen, live.snapshot)
    look = Look(
        values=seen.values,
        cut=seen.cut,
        refused=dict.fromkeys(names, watch.why_refused) if watch.why_refused else seen.refused,
        ending=watch.looked or (Ending.EXIT if exit_code is not None else Ending.NO_TIME),
        wall_s=end_s - begin_s,
        num_steps=observation.run.num_steps,
        exit_code=exit_code,
    )
    return FirstRun(
        observation=observation,
        names=names,
        look=look,
        pace=pace,
        covered=isolation.uncovered is None and not lost,
        interrupted=interrupted,
    )


def _isolation(live: LiveRun, argv: Sequence[str]) -> Isolation:
    own_network = not live.exceptions.network
    isolation = plan_isolation(
        argv, Path.cwd(), scratch_root(), network=own_network, exceptions=live.exceptions
    )
    if isolation.missing is not None and live.warn is not None:
        live.warn(f"hotloop: {isolation.missing}")
    return isolation


def _variables(
    live: LiveRun, scratch: Path, folder: Path, isolation: Isolation, environment: Mapping[str, str]
) -> dict[str, str]:
    """Write the probe's orders; return the environment in which it finds them."""
    told = scratch / "probe.json"
    ProbeConfig(
        folder=str(folder),
        record=live.record,
        lean=live.rule.steps is None,
        device_clock=True,
        instruments=orders(live.deep),
        memory_snapshot=live.snapshot is not None,
        sites=True,
        **guard_orders(isolation, scratch),
    ).save(told)
    variables = with_changes(quiet(environment, scratch), live.changes)
    if live.deep:
        variables = without_profiler_logs(variables)
    if isolation.network:
        variables = in_own_network(variables)
    return probed(variables, told)


def _with_hint(blame: str | None, network: NetworkUse, code: int | None) -> str | None:
    """Return whose failure it was, with what to type where a service of this machine did not answer."""
    if code in (None, 0) or "--network" in (blame or ""):
        return blame
    return " ".join(filter(None, (blame, network.hint()))) or None


def _interrupted(watch: Watch) -> bool:
    """Watch the run; return whether the user interrupted it."""
    try:
        watch.until_done()
    except KeyboardInterrupt:
        return True
    return False


def _no_memory(
    live: LiveRun,
    argv: Sequence[str],
    environment: Mapping[str, str],
    isolation: Isolation,
    failure: Failure,
    progress: Progress,
) -> OutOfMemory | None:
    """Return what held the memory that a program ran out of; None: it did not fail so."""
    if not ran_out(failure):
        return None
    left_s = (live.deadline or endless()).left_s()
    return out_of_memory(failure, argv, with_changes(environment, live.changes), isolation, left_s, progress)


def _blame(
    live: LiveRun,
    argv: Sequence[str],
    environment: Mapping[str, str],
    run: Run,
    isolation: Isolation,
    code: int | None,
    lived_s: float,
    progress: Progress,
) -> str | None:
    """Say whose failure it was that the program failed; None: it did not, or it was not asked."""
    if code is None or not may_be_ours(run, code, lived_s):
        return None
    deadline = live.deadline or endless()
    if deadline.left_s() < lived_s:
        return f"{deadline.no_time} to see whether it fails without hotloop, too"
    variables = with_changes(environment, live.changes)
    note = live.note or progress
    return whose(
        argv, variables, live.exceptions, code, lived_s, note, progress, deadline.left_s(), isolation
    )
