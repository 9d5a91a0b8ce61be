"""One more run of the user's command, in which knobs are switched on and off; ended when they had their turn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.launch.caches import COMPILERS, seed_caches
from hotloop.launch.environment import own_caches, probed, quiet
from hotloop.launch.isolation.decide import Isolation, guard_orders
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.launch.log_tail import last_words
from hotloop.launch.process import start
from hotloop.model.observation import Anchor
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.process.config import ProbeConfig
from hotloop.stats.pairs import MIN_BLOCKS

POLL_S = 0.25
TIME_OVER = "the time for it was over"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How the run is started.

    Attributes:
        argv: the resolved command.
        environment: the user's.
        isolation: what it is kept from.
        anchor: what ends a step.
        shape: of the blocks (`probe.whatif.Shape`).
        limit_s: for everything together.
        stdin: a copy of what the command reads; None: nothing.
        always: the orders of what is on all the time.
        compiled: where compiled code is kept; None: it is thrown away.
        time_over: why something had no turn, where the time was over.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    isolation: Isolation
    anchor: Anchor
    shape: dict[str, Any]
    limit_s: float
    stdin: Path | None = None
    always: tuple[dict[str, Any], ...] = ()
    compiled: Path | None = None
    time_over: str = TIME_OVER


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one training process wrote (see `probe.whatif.Report`)."""

    pid: int
    rank: int | None
    blocks: tuple[tuple[str | None, tuple[float, ...]], ...] = ()
    holds: tuple[tuple[tuple[str, ...], tuple[float, ...]], ...] = ()
    block_spans: tuple[tuple[float, float], ...] = ()
    hold_spans: tuple[tuple[float, float], ...] = ()
    hold_whole_s: tuple[float, ...] = ()
    settled: dict[str, int] = {}
    switched: dict[str, tuple[float, int]] = {}
    benches: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    effects: dict[str, tuple[bool, str]] = {}
    from_start: tuple[str, ...] = ()
    current: str | None = None
    num_void: int = 0
    num_noisy: int = 0
    done: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What all starts of the program gave.

    Attributes:
        reports: of the leading process, one for each start of the program.
        gaps: what was not measured, and why.
        seconds: what it took.
    """

    reports: tuple[Report, ...]
    gaps: tuple[str, ...] = ()
    seconds: float = 0.0


Enough = Callable[[Report], bool]


def run(
    setting: Setting,
    orders: Sequence[dict[str, Any]],
    progress: Callable[[str], None],
    enough: Enough = lambda _: False,
) -> Outcome:
    """Run the command until every order had its turn, `enough` says so, or the time is over.

    A knob may end the program (a layout that its `view` refuses): the others are tried without it. A short program is
    started as often as that brings it on.
    """
    began = time.monotonic()
    todo = list(orders)
    reports: list[Report] = []
    gaps: list[str] = []
    ending = ""
    while todo:
        left = setting.limit_s - (time.monotonic() - began)
        if left <= 0:
            break
        report, code, ending = _once(setting, todo, left, progress, enough)
        if report is None:
            break
        reports.append(report)
        # A program that came to its own end, or was ended by us, is no fault of the knob that was on.
        blamed = report.current if code not in (None, 0) else None
        if blamed is not None:
            gaps.append(f"{blamed}: {ending}, while it was on")
        todo = [order for order in todo if order["name"] != blamed and not _is_over(order["name"], reports)]
        got_on = len(report.blocks) > 1 or bool(report.benches) or blamed is not None
        if report.done or code is None or not got_on or report.holds:
            break
    if todo:
        gaps.append(f"{', '.join(order['name'] for order in todo)}: {ending or setting.time_over}")
    return Outcome(reports=tuple(reports), gaps=tuple(gaps), seconds=time.monotonic() - began)


def _is_over(name: str, reports: Sequence[Report]) -> bool:
    """Whether an order had its turn; one that the program's end cut short goes on in the next start."""
    blocks = sum(knob == name for report in reports for knob, _ in report.blocks)
    without_effect = any(not report.effects.get(name, (True, ""))[0] for report in reports)
    done = any(name in report.benches or name in report.failed for report in reports)
    return done or without_effect or blocks >= MIN_BLOCKS


def _once(
    setting: Setting,
    orders: Sequence[dict[str, Any]],
    limit_s: float,
    progress: Callable[[str], None],
    enough: Enough,
) -> tuple[Report | None, int | None, str]:
    """Start the program once; return what it wrote, its exit code (None: it was ended), and how it ended."""
    scratch = new_scratch("whatif")
    try:
        folder = scratch / "probe"
        folder.mkdir()
        page = ControlPage.create(folder / "control")
        path = scratch / "probe.json"
        ProbeConfig(
            folder=str(folder),
            anchor=(setting.anchor.kind, setting.anchor.slot, setting.anchor.every),
            activations=(*setting.always, *orders),
            record=False,
            whatif=setting.shape,
            **guard_orders(setting.isolation, scratch),
        ).save(path)
        compiled = setting.compiled or scratch / "compiled"
        seed_caches(setting.environment, compiled, COMPILERS)
        environment = probed(own_caches(quiet(setting.environment, scratch), scratch, compiled), path)
        run = start(
            setting.argv, environment, setting.isolation, scratch, log=scratch / "log", stdin=setting.stdin
        )
        watch = _Watch(folder, progress, enough)
        try:
            arrived = run.wait(watch.done, poll_s=POLL_S, timeout_s=limit_s)
            code = run.exit_code()
            last = last_words(run.log_end())
        finally:
            run.end()
            page.close()
        watch.done()
        said = f": {last}" if last else ""
        ending = setting.time_over if code is None else f"the program ended with exit code {code}{said}"
        return (watch.leading, None, "") if arrived else (watch.leading, code, ending)
    finally:
        remove(scratch)


class _Watch:
    """Reads the reports as they come."""

    def __init__(self, folder: Path, progress: Callable[[str], None], enough: Enough) -> None:
        self._folder = folder
        self._enough = enough
        self._num_holds = 0
        self._progress = progress
        self._said: str | None = None
        self.leading: Report | None = None

    def done(self) -> bool:
        """Whether the leading process is through."""
        reports = [
            msgspec.convert(json.loads(path.read_text()), Report, strict=False)
            for path in self._folder.glob("whatif-*.json")
        ]
        self.leading = min(reports, key=lambda one: (one.rank or 0, -len(one.blocks)), default=None)
        if self.leading is None:
            return False
        if self.leading.current and self.leading.current != self._said:
            self._said = self.leading.current
            self._progress(f"switched on: {self._said}")
        if len(self.leading.holds) > self._num_holds:
            self._num_holds = len(self.leading.holds)
            if self._enough(self.leading):
                return True
        return self.leading.done
