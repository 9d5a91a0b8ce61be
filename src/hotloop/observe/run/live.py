"""Run the user's command with the probe inside, measure, and end it at a step boundary."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from hotloop.launch.command import resolve, script_of
from hotloop.launch.environment import in_own_network, probed, quiet, with_changes, without_profiler_logs
from hotloop.launch.isolation.decide import Exceptions, Isolation, guard_orders, plan_isolation
from hotloop.launch.isolation.keep_outputs import keep_writes
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.process import Run, start
from hotloop.machine.card.cache import kept_card
from hotloop.machine.environment.contention import ForeignLoad, foreign_share, steal_share
from hotloop.machine.host.identity import identity
from hotloop.machine.monitor.monitor import Monitor
from hotloop.model.observation import Observation
from hotloop.model.quantities import counted, duration
from hotloop.observe.build import build, leading
from hotloop.observe.coverage import no_step, with_gaps
from hotloop.observe.decode.processes import failure_of
from hotloop.observe.decode.spans import Timeline, timelines
from hotloop.observe.profile.efficiency import with_efficiency
from hotloop.observe.profile.profile import with_deep
from hotloop.observe.profile.windows import MAX_STEP_S, Course, orders, run_course
from hotloop.observe.run.blame import may_be_ours, whose
from hotloop.observe.run.live_details import live_details, still_to_come
from hotloop.observe.run.monitoring import INTERVAL_S, with_monitors
from hotloop.observe.run.network_use import NETWORK, NeedsNetwork, NetworkUse
from hotloop.observe.run.stopping import StopRule
from hotloop.observe.steps.ranks import measured_s, steady_windows
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.probe.control.control_page import (
    GO_UNTIL,
    LOST,
    PID,
    RANK,
    STATE,
    STEPS,
    STOP,
    STOPPED,
    WAITING,
    ControlPage,
)
from hotloop.probe.process.config import ProbeConfig

Progress = Callable[[str], None]
POLL_S = 0.25
STOP_PATIENCE_S = 5.0
"""A rank may wait in a collective for one that has stopped already; it is ended after this."""
END_PATIENCE_S = 5.0
"""What a program whose training processes are gone may take to end itself."""


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
        limit_s: after this the program is ended, steps or not; None: no limit.
        changes: environment variables on top of the user's.
        record: False switches the phase timers off (the overhead benchmark).
        deep: the profilers to look with, in windows of their own, once it has been seen enough.
        keep: where the files go that a whole run (`rule.full`) wrote; None: nowhere.
        exceptions: what of the user's files the program may change.
        warn: told before the start what cannot be covered.
        note: told what is to stay on the screen; None: it is progress.
        details: told what the run looks like, again and again; None: nobody looks.
    """

    words: tuple[str, ...]
    rule: StopRule
    log: Path | None = None
    limit_s: float | None = None
    changes: dict[str, str] = {}
    record: bool = True
    deep: tuple[str, ...] = ()
    keep: Path | None = None
    exceptions: Exceptions = Exceptions()
    warn: Callable[[str], None] | None = None
    note: Callable[[str], None] | None = None
    details: Callable[[Sequence[str]], None] | None = None


def observe(live: LiveRun, progress: Progress, environment: Mapping[str, str] | None = None) -> Observation:
    """Return what was measured of one run.

    Raises:
        HotloopError: the command cannot be run.
        NoStepError: it runs no Python with torch, or took no step.
        Interrupted: Ctrl-C, with what was measured.
    """
    argv = resolve(live.words)
    if os.environ.get(NETWORK):
        live = _with_network(live)
    try:
        return _in_scratch(live, argv, progress, environment or os.environ)
    except NeedsNetwork as needs:
        (live.note or progress)(str(needs))
        return _in_scratch(_with_network(live), argv, progress, environment or os.environ)


def _with_network(live: LiveRun) -> LiveRun:
    return msgspec.structs.replace(live, exceptions=msgspec.structs.replace(live.exceptions, network=True))


def _in_scratch(
    live: LiveRun, argv: Sequence[str], progress: Progress, environment: Mapping[str, str]
) -> Observation:
    scratch = new_scratch("observe")
    try:
        return _observe(live, argv, scratch, progress, environment)
    finally:
        remove(scratch)


def _observe(
    live: LiveRun, argv: Sequence[str], scratch: Path, progress: Progress, environment: Mapping[str, str]
) -> Observation:
    folder = scratch / "probe"
    folder.mkdir()
    page = ControlPage.create(folder / "control")
    told = scratch / "probe.json"
    isolation = plan_isolation(
        argv,
        Path.cwd(),
        scratch_root(),
        network=not live.exceptions.network,
        exceptions=live.exceptions,
    )
    if isolation.missing is not None and live.warn is not None:
        live.warn(f"hotloop: {isolation.missing}")
    config = ProbeConfig(
        folder=str(folder),
        record=live.record,
        lean=live.rule.steps is None,
        device_clock=True,
        instruments=orders(live.deep),
        sites=True,
        **guard_orders(isolation, scratch),
    )
    config.save(told)
    variables = with_changes(quiet(environment, scratch), live.changes)
    if live.deep:
        variables = without_profiler_logs(variables)
    if isolation.network:
        variables = in_own_network(variables)
    begin_s = time.monotonic()
    run = start(argv, probed(variables, told), isolation, scratch, log=live.log)
    network = NetworkUse(run, isolation, asked_for=live.exceptions.network)
    watch = _Watch(live, run, folder, page, progress, begin_s, network)
    try:
        with Monitor((os.getpid(),), interval_s=INTERVAL_S) as monitor:
            watch.monitor = monitor
            interrupted = _follow(watch, run, page)
            end_s = time.monotonic()
        exit_code = watch.exit_code
        lost = any(row[LOST] for row in page.rows())
    finally:
        run.end()
        page.close()
        if live.keep is not None and live.rule.full:
            keep_writes(scratch, live.keep, Path.cwd())
    network.check(exit_code, waited=watch.waits_for_network)
    blame = _blame(live, argv, environment, run, isolation, exit_code, end_s - begin_s, progress)
    if exit_code not in (None, 0) and "--network" not in (blame or ""):
        blame = " ".join(filter(None, (blame, network.hint()))) or None
    known = timelines(folder, watch.known)
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
    observation = with_gaps(observation, isolation, lost=lost, interrupted=interrupted)
    observation = with_monitors(observation, monitor.columns, monitor.errors, known, begin_s, watch.lead_pid)
    observation = with_deep(observation, folder, known, live.deep, watch.why_not_closer)
    observation = with_efficiency(observation, kept_card())
    if interrupted:
        raise Interrupted(observation if observation.step else None)
    if observation.step is None:
        raise no_step(
            observation, run, folder, known, argv, timed_out=watch.timed_out, lost=lost, blame=blame
        )
    if blame is not None and live.warn is not None:
        live.warn(f"hotloop: {blame}")
    return observation


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
    note = live.note or progress
    variables = with_changes(environment, live.changes)
    return whose(argv, variables, live.exceptions, code, lived_s, note, progress, isolation)


def _follow(watch: _Watch, run: Run, page: ControlPage) -> bool:
    """Watch the run to its end, or end it at a step boundary; return whether the user interrupted it."""
    interrupted = False
    try:
        watch.until_done()
    except KeyboardInterrupt:
        interrupted = True
    watch.exit_code = run.exit_code()
    if watch.exit_code is None:
        _stop(run, page)
        if not interrupted and not any(run.ids.lives(row[PID]) for row in page.rows()):
            # It was on its way to its own end: a loop that is over comes to no boundary.
            run.wait(lambda: run.exit_code() is not None, poll_s=0.01, timeout_s=END_PATIENCE_S)
            watch.exit_code = run.exit_code()
    return interrupted


class _Watch:
    """Follows a run until it has been seen enough or has ended."""

    def __init__(
        self,
        live: LiveRun,
        run: Run,
        folder: Path,
        page: ControlPage,
        progress: Progress,
        begin_s: float,
        network: NetworkUse,
    ) -> None:
        self._live = live
        self._run = run
        self._folder = folder
        self._page = page
        self._progress = progress
        self._begin_s = begin_s
        self._next_s = 0.0
        self.known: dict[int, Timeline] = {}
        self.monitor: Monitor | None = None
        self.timed_out = False
        self.exit_code: int | None = None
        self._network = network
        self.waits_for_network = False
        self.lead_pid: int | None = None
        """The leading process, as it is seen from here; None: there was none while the run lived."""
        self.foreign_share: float | None = None
        self.steal_share: float | None = None
        self.why_not_closer: str | None = (
            "the whole run is the user's own"
            if live.rule.full
            else "the program ended before enough was measured"
        )
        """Why the profilers were not put to use; None: they were."""

    def until_done(self) -> None:
        """Follow the run, and see what share of the machine others took meanwhile."""
        load = ForeignLoad()
        before = load.snapshot((os.getpid(),))
        try:
            self._follow()
        finally:
            after = load.snapshot((os.getpid(),))
            self.foreign_share, self.steal_share = foreign_share(before, after), steal_share(before, after)

    def _follow(self) -> None:
        while self._run.exit_code() is None:
            elapsed = time.monotonic() - self._begin_s
            if self._live.limit_s is not None and elapsed > self._live.limit_s:
                self.timed_out = True
                return
            if elapsed >= self._next_s:
                # Looking at all steps again costs more as they grow: look ever more rarely.
                self._next_s = elapsed * 1.05 + POLL_S
                self._network.look()
                if self._seen_enough() or self._lost_all():
                    self._look_closer()
                    return
                if leading(self.known) is None and self._network.waits():
                    self.waits_for_network = True
                    return
            time.sleep(POLL_S / 5)

    def _lost_all(self) -> bool:
        """Whether no record will come any more, on a full disk; a whole run goes on all the same."""
        rows = self._page.rows()
        return bool(rows) and all(row[LOST] for row in rows) and not self._live.rule.full

    def _look_closer(self) -> None:
        """Run the profilers, once the light measurement is done."""
        lead = leading(self.known)
        anchor = find_anchor(lead.spans) if lead else None
        steady = steady_windows(lead, anchor) if lead and anchor else []
        names = tuple(order["name"] for order in orders(self._live.deep))
        if lead is None or anchor is None or not steady or not names:
            return
        step_s = median(window.duration_s for window in steady)
        if step_s > MAX_STEP_S:
            self.why_not_closer = f"a step takes more than {MAX_STEP_S:g} s"
            return
        failure = failure_of(self._folder, lead.pid, "deep")
        if failure is not None:  # nobody there will answer
            self.why_not_closer = f"the profilers could not be installed in the program: {failure}"
            return
        self.why_not_closer = None
        course = Course(names=names, anchor=anchor, step_s=step_s, lead=lead.pid)
        run_course(self._run, self._page, course, self._progress)

    def _seen_enough(self) -> bool:
        timelines(self._folder, self.known)
        lead = leading(self.known)
        self.lead_pid = self._run.ids.outside(lead.pid) if lead else None
        anchor = find_anchor(lead.spans, may_optimize=lead.may_optimize, under_way=True) if lead else None
        steady = steady_windows(lead, anchor) if lead and anchor else []
        if lead is None or not steady:
            self._progress("waiting for the first steps")
            return False
        middle = sorted(window.duration_s for window in steady)[len(steady) // 2]
        measured = measured_s(lead, steady)
        to_come = still_to_come(self._live.rule, len(steady), measured) if self._live.details else ""
        said = [counted(len(steady), "step"), f"{duration(middle)} a step", *([to_come] if to_come else [])]
        self._progress(f"measuring: {', '.join(said)}")
        if self._live.details is not None:
            sample = self.monitor.columns.last() if self.monitor is not None else {}
            self._live.details(live_details(lead, steady, sample))
        return self._live.rule.enough(len(steady), measured, steady[-1].end_s - steady[0].begin_s)


def _stop(run: Run, page: ControlPage) -> None:
    """Let every training process come to a step boundary, the same for all ranks.

    Ranks in step are at most one step apart; without a common last step one would wait for a rank that has stopped.
    """
    rows = page.rows()
    page.numbers[GO_UNTIL] = max((row[STEPS] for row in rows), default=0) + 2
    if sum(row[RANK] >= 0 for row in rows) > 1:
        run.wait(lambda: _all_in(run, page, WAITING), poll_s=0.01, timeout_s=STOP_PATIENCE_S)
    page.numbers[STOP] = 1
    run.wait(lambda: _all_in(run, page, STOPPED), poll_s=0.01, timeout_s=STOP_PATIENCE_S)


def _all_in(run: Run, page: ControlPage, state: int) -> bool:
    """Whether all processes that have taken steps and live are held."""
    return all(row[STATE] == state or not run.ids.lives(row[PID]) for row in page.rows())
