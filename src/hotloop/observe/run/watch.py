"""Follow a run until it has been seen enough, its time is over, or it has ended; then look closer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from hotloop.launch.deadline import Deadline
from hotloop.machine.environment.contention import ForeignLoad, foreign_share, steal_share
from hotloop.machine.monitor.monitor import Monitor
from hotloop.model.quantities import counted, duration
from hotloop.observe.build import leading
from hotloop.observe.decode.processes import failure_of
from hotloop.observe.decode.spans import Timeline, timelines
from hotloop.observe.profile.windows import Course, Ending, by_worth, orders, run_course
from hotloop.observe.run.live_details import live_details, still_to_come
from hotloop.observe.run.pace import pace_of
from hotloop.observe.run.stopping import StopRule
from hotloop.observe.steps.ranks import MIN_STEPS, measured_s, steady_windows
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.probe.control.control_page import LOST, ControlPage

POLL_S = 0.25


class Watched(Protocol):
    """A run of the command, as far as a watch needs to know it."""

    def exit_code(self) -> int | None:
        """Return how it ended; None while it runs."""

    def lives(self, pid: int) -> bool:
        """Whether one of its processes, under the number that it knows itself by, is alive."""

    def outside(self, pid: int) -> int | None:
        """Return the number of one of its processes as it is seen from here."""


class Network(Protocol):
    """What is seen of a run's network (`observe.run.network_use`)."""

    def look(self) -> None:
        """See whether it is connected beyond this machine."""

    def waits(self) -> bool:
        """Whether it has tried other machines for a while and still does."""

    def trains(self) -> None:
        """Say that steps are taken."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of a run.

    Attributes:
        rule: when it has been seen enough.
        deep: the instruments to look with then.
        later: from the start-up and the step in seconds, what a stage after the observation needs at least; None: there
            is none.
        details: told what the run looks like, again and again; None: nobody looks.
    """

    rule: StopRule
    deep: tuple[str, ...] = ()
    later: Callable[[float, float], float] | None = None
    details: Callable[[tuple[str, ...]], None] | None = None


class Watch:
    """Follows one run.

    Args:
        wishes: what is wanted of it.
        deadline: of the whole command.
        run: the run.
        folder: the probe's.
        page: its control page.
        progress: told of what goes on.
        begin_s: when the command was started.
        network: what the run does with it.
    """

    def __init__(
        self,
        wishes: Wishes,
        deadline: Deadline,
        run: Watched,
        folder: Path,
        page: ControlPage,
        progress: Callable[[str], None],
        begin_s: float,
        network: Network,
    ) -> None:
        self._network = network
        self._wishes = wishes
        self._deadline = deadline
        self._run = run
        self._folder = folder
        self._page = page
        self._progress = progress
        self._begin_s = begin_s
        self._next_s = 0.0
        self._measuring: Deadline | None = None
        """Of the undisturbed measurement; None: no steady step has been seen."""
        self.known: dict[int, Timeline] = {}
        self.monitor: Monitor | None = None
        self.timed_out = False
        """The whole time was over before enough steps were seen."""
        self.cut_short = False
        """Fewer steps were measured than the rule asks for: the rest of the time was needed, or it was over."""
        self.waits_for_network = False
        """It was ended because it tried to reach other machines, and took no step."""
        self.lead_pid: int | None = None
        """The leading process, as it is seen from here; None: there was none while the run lived."""
        self.why_refused: str | None = None
        """Why the instruments cannot be used in the program; None: they can, as far as is known."""
        self.foreign_share: float | None = None
        self.steal_share: float | None = None
        self.looked: Ending | None = None
        """How the look with the instruments ended; None: they were not put to use."""

    def until_done(self) -> None:
        """Follow the run, and see what share of the machine others took meanwhile."""
        load = ForeignLoad()
        before = load.snapshot((os.getpid(),))
        try:
            self._follow()
        finally:
            after = load.snapshot((os.getpid(),))
            self.foreign_share, self.steal_share = foreign_share(before, after), steal_share(before, after)

    def _later_s(self) -> float | None:
        pace = pace_of(leading(self.known), self._begin_s)
        if pace is None or self._wishes.later is None:
            return None
        return self._wishes.later(pace.startup_s, pace.step_s)

    def _follow(self) -> None:
        clock = self._deadline.clock
        while self._run.exit_code() is None:
            if self._deadline.is_over():
                timelines(self._folder, self.known)
                self.timed_out = self.cut_short = True
                return
            elapsed = clock.now() - self._begin_s
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
            clock.sleep(POLL_S / 5)

    def _lost_all(self) -> bool:
        """Whether a full disk ends the records; a whole run continues."""
        rows = self._page.rows()
        return bool(rows) and all(row[LOST] for row in rows) and not self._wishes.rule.full

    def _look_closer(self) -> None:
        """Put the instruments to use, once the undisturbed measurement is done."""
        lead = leading(self.known)
        pace = pace_of(lead, self._begin_s)
        known = tuple(order["name"] for order in orders(self._wishes.deep))
        if lead is None or pace is None or not known:
            return
        failure = failure_of(self._folder, lead.pid, "deep")
        if failure is not None:  # nobody there will answer
            self.why_refused = f"the profilers could not be installed in the program: {failure}"
            return
        course = Course(
            names=by_worth(known, pace.phases),
            known=known,
            anchor=pace.anchor,
            step_s=pace.step_s,
            lead=lead.pid,
            deadline=self._deadline.earlier(self._deadline.share_s(1, self._later_s())),
            restart_s=pace.startup_s,
        )
        self.looked = run_course(self._run, self._page, course, self._progress)

    def _seen_enough(self) -> bool:
        timelines(self._folder, self.known)
        lead = leading(self.known)
        self.lead_pid = self._run.outside(lead.pid) if lead else None
        anchor = find_anchor(lead.spans, may_optimize=lead.may_optimize, under_way=True) if lead else None
        steady = steady_windows(lead, anchor) if lead and anchor else []
        if lead is None or not steady:
            self._progress("waiting for the first steps")
            return False
        self._network.trains()
        rule, details = self._wishes.rule, self._wishes.details
        middle = sorted(window.duration_s for window in steady)[len(steady) // 2]
        measured = measured_s(lead, steady)
        to_come = still_to_come(rule, len(steady), measured) if details else ""
        said = [counted(len(steady), "step"), f"{duration(middle)} a step", *([to_come] if to_come else [])]
        self._progress(f"measuring: {', '.join(said)}")
        if details is not None:
            sample = self.monitor.columns.last() if self.monitor is not None else {}
            details(live_details(lead, steady, sample))
        # To now, not to the last step: the program may be in an evaluation of minutes.
        elapsed_s = self._deadline.clock.now() - steady[0].begin_s
        if rule.enough(len(steady), measured, elapsed_s):
            return True
        over = self._share_is_over(len(steady))
        self.cut_short = over and not rule.lasting
        return over

    def _share_is_over(self, num_steps: int) -> bool:
        """Whether what comes after needs the rest of the time; steps that were asked for by number come first."""
        rule = self._wishes.rule
        if rule.full or rule.steps is not None:
            return False
        if self._measuring is None:
            share_s = self._deadline.share_s(1 + bool(self._wishes.deep), self._later_s())
            self._measuring = self._deadline.earlier(share_s)
        return self._measuring.is_over() and num_steps >= MIN_STEPS
