"""Switch knobs on and off for a few steps each, and time the steps: what would be if they were on.

All of it happens within one process, so that neither another process's memory layout nor the machine's drift comes
between the blocks that are compared. First each knob is on alone: that says whether it acts, whether the program
survives it, and for how long the steps after a switch remember what was before. Then, where patterns were ordered, many
are on together, so that each hold informs every knob. What is measured is written as it goes: a program may end at any
step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median
from time import monotonic
from typing import Any

from hotloop.probe.activation.knob import Bench, Knob
from hotloop.probe.control.contention import MAX_SHARE, BlockContention
from hotloop.probe.probe import Probe
from hotloop.probe.process.rank import rank_and_world

MAX_REPEATS, MAX_VOID = 2, 12
"""Of one block, and of all: a machine that never becomes quiet must not eat the time."""
PARTS, SLOW = 4, 3.0
"""A block that takes so many times as long as the first one ends after a quarter of its steps, or a later one."""
HOPELESS = 1.4
"""So many times as slow alone, and again: a knob is left out of the patterns, whose steps it would take."""
MEMORY, SCATTERS, MAX_MEMORY = 0.1, 3.0, 8
"""Steps after a switch count as remembering while they are further than a tenth from the steps to come, and than three
times what those scatter; at most so many are waited for."""
RARE = 0.45
"""Of all steps: what evaluates less often does so between steps of its training."""
WRITE_EVERY_S = 0.5
Steps = Generator[int, None, None]
"""Yields after how many steps it wants to go on."""


@dataclass(frozen=True)
class Shape:
    """How long to look, in steps: every rank switches at the same ones.

    Attributes:
        warm_steps: before anything is measured.
        num_steps: timed in a block.
        discard: first steps of a block that are not timed.
        rounds: blocks with each knob on; one with it off is before and after each. Where patterns follow, one is
            enough of a knob that does not look hopeless in it.
        hold_steps: timed while a pattern is held.
        patterns: the names of the knobs that are on together in each hold.
    """

    warm_steps: int
    num_steps: int
    discard: int
    rounds: int
    hold_steps: int = 0
    patterns: tuple[tuple[str, ...], ...] = ()


@dataclass
class Report:
    """What is written.

    Attributes:
        blocks: the knob that was on (None: none), and the seconds of each step.
        switched: seconds of the first switching on of each knob and the steps that followed, and their number.
        benches: what was driven alone.
        failed: knobs and benches that raised, with what.
        holds: the knobs that were on together, and the seconds of each timed step.
        block_spans: of each block, begin and end in seconds of the machine's monotonic clock.
        hold_spans: of each hold.
        hold_whole_s: of each hold, seconds a step with all that lies between steps.
        settled: steps after a switch that each knob's patterns wait for.
        effects: whether each knob was seen to act, and the evidence.
        from_start: the knobs that did not, and would if they were on from the start of a process.
        current: the knob that is on now; the one to blame when the program ends here.
        num_void: blocks repeated because others were busy.
        num_noisy: blocks kept although they were.
        done: all knobs had their turn.
    """

    pid: int
    rank: int | None
    blocks: list[tuple[str | None, list[float]]] = field(default_factory=list)
    switched: dict[str, tuple[float, int]] = field(default_factory=dict)
    holds: list[tuple[list[str], list[float]]] = field(default_factory=list)
    block_spans: list[tuple[float, float]] = field(default_factory=list)
    hold_spans: list[tuple[float, float]] = field(default_factory=list)
    hold_whole_s: list[float] = field(default_factory=list)
    settled: dict[str, int] = field(default_factory=dict)
    benches: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    effects: dict[str, tuple[bool, str]] = field(default_factory=dict)
    from_start: list[str] = field(default_factory=list)
    current: str | None = None
    num_void: int = 0
    num_noisy: int = 0
    done: bool = False


class WhatIf:
    """Drives the knobs and benches among the probe's activations.

    Args:
        probe: the probe.
        shape: how long to look.
    """

    def __init__(self, probe: Probe, shape: Shape) -> None:
        self._probe = probe
        self._shape = shape
        self._knobs = [one for one in probe.activations if isinstance(one, Knob) and not one.fixed]
        self._benches = [one for one in probe.activations if isinstance(one, Bench)]
        self._watching: list[Knob | Bench] = [*self._knobs, *self._benches]
        self._report = Report(pid=os.getpid(), rank=rank_and_world()[0])
        self._neighbours = BlockContention()
        self._alone = rank_and_world()[1] == 1
        """Ranks switch at the same steps, so none of them can repeat a block of its own accord."""
        self._times: list[float] = []
        """Ends of the steps since a block or hold began."""
        self._interrupted: list[int] = []
        """How many steps had a forward without gradients by then."""
        self._usual_s: float | None = None
        """What the first block took, in which no knob was on."""
        self._next = 0
        self._written_s = 0.0
        self._course: Steps | None = self._measure()
        probe.boundary.on_step.append(self.on_step)

    def on_step(self, steps: int) -> None:
        """Go on, if it is time; called at every boundary."""
        if self._course is None:
            return
        boundary = self._probe.boundary
        self._times.append(boundary.clock.now() * 1e-9)
        self._interrupted.append(boundary.num_interrupted)
        if steps <= self._shape.warm_steps:
            for one in self._watching:
                with self._probe.survive(f"watch:{one.name}"):
                    one.watch(steps)
        if steps < self._next:
            return
        try:
            self._next = steps + next(self._course)
        except StopIteration:
            self._course = None
        except Exception:  # the probe fails open
            self._course = None
            self._probe.note("whatif")

    def _measure(self) -> Steps:
        yield self._shape.warm_steps
        self._report.pid, self._report.rank = os.getpid(), rank_and_world()[0]
        self._write()
        for bench in self._benches:
            if not bench.last:
                self._drive(bench)
        yield from self._block(None, 0)
        for knob in self._knobs:
            yield from self._rounds(knob)
        yield from self._patterns()
        for bench in self._benches:
            if bench.last:
                self._drive(bench)
        self._report.done = True
        self._write()

    def _patterns(self) -> Steps:
        """Hold one pattern after the other, of the knobs that act and are not hopeless."""
        usable = [knob for knob in self._knobs if self._worth_it(knob)]
        seen: list[Knob] = []
        for pattern in self._shape.patterns:
            wanted = [knob for knob in usable if knob.name in pattern]
            changed = [knob for knob in usable if (knob in seen) != (knob in wanted)]
            self._report.current = " + ".join(knob.name for knob in wanted) or None
            done = [knob for knob in changed if self._switch(knob, on=knob in wanted)]
            usable = [knob for knob in usable if knob in done or knob not in changed]
            seen = [knob for knob in wanted if knob in usable]
            if not usable:
                return
            yield from self._hold(seen, changed)

    def _hold(self, on: list[Knob], changed: list[Knob]) -> Steps:
        yield max([1, *(self._report.settled.get(knob.name, 1) for knob in changed)])
        since, began = monotonic(), self._began()
        yield from self._timed(began, self._shape.hold_steps)
        spent = self._ended(began)
        self._report.holds.append(([knob.name for knob in on], self._of_training(spent)))
        self._report.hold_whole_s.append(fmean(spent))
        self._report.hold_spans.append((since, monotonic()))
        if monotonic() - self._written_s > WRITE_EVERY_S:
            self._write()

    def _worth_it(self, knob: Knob) -> bool:
        name = knob.name
        acts, _ = self._report.effects.get(name, (False, ""))
        return acts and name not in self._report.failed and not self._hopeless(knob)

    def _hopeless(self, knob: Knob) -> bool:
        """Whether the quicker steps of every block with a knob on were far slower than those of the blocks around it.

        A long step now and then is the program's: a recommender that draws its samples every tenth step did so in both
        blocks of a fused optimizer, which was called five times as slow.
        """
        usual = [(on, sorted(times)[(len(times) - 1) // 4]) for on, times in self._report.blocks if times]
        slower = [
            during / min(around)
            for index, (on, during) in enumerate(usual)
            if on == knob.name
            and (around := [spent for other, spent in usual[max(0, index - 1) : index + 2] if other is None])
        ]
        return bool(slower) and min(slower) >= HOPELESS

    def _drive(self, bench: Bench) -> None:
        self._report.current = bench.name
        self._write()
        try:
            self._report.benches[bench.name] = bench.run()
        except Exception as error:  # what fails is left out, the program goes on
            self._report.failed[bench.name] = f"{type(error).__name__}: {error}"
        self._report.current = None
        self._write()

    def _rounds(self, knob: Knob) -> Steps:
        for number in range(self._shape.rounds):
            self._report.current = knob.name
            if number == 0:
                self._write()
            began = self._probe.boundary.clock.read()
            if not self._switch(knob, on=True):
                break
            settle = self._block(knob.name, knob.settle_steps)
            for wait in settle:
                yield wait
                self._report.switched.setdefault(
                    knob.name, ((self._probe.boundary.clock.read() - began) * 1e-9, wait)
                )
            if self._shape.patterns:
                remembers = knob.settle_steps + memory(self._report.blocks[-1][1])
                self._report.settled[knob.name] = max(remembers, self._report.settled.get(knob.name, 0))
            on, evidence = knob.effect()
            self._report.effects[knob.name] = (bool(on), evidence)
            if not on and knob.from_start and knob.name not in self._report.from_start:
                self._report.from_start.append(knob.name)
            if not self._switch(knob, on=False):
                break
            self._report.current = None
            yield from self._block(None, knob.settle_steps)
            self._write()
            if not on or (self._shape.patterns and not self._hopeless(knob)):
                break
        self._report.current = None
        self._write()

    def _switch(self, knob: Knob, *, on: bool) -> bool:
        if knob not in self._probe.activations:
            self._report.failed[knob.name] = "it raised at a hook point (see the notes)"
            return False
        try:
            knob.switch(on)
        except Exception as error:  # a knob that fails is left out, the program goes on
            self._report.failed[knob.name] = f"{type(error).__name__}: {error}"
            self._probe.drop(knob, "switch")
            return False
        return True

    def _block(self, knob: str | None, settle_steps: int) -> Steps:
        """Let some steps go by, then time the next ones; again where others were busy meanwhile."""
        clock = self._probe.boundary.clock
        yield self._shape.discard + settle_steps
        for repeat in range(MAX_REPEATS + 1):
            clock.drain()
            before = self._neighbours.look()
            since, began = monotonic(), self._began()
            yield from self._timed(began)
            times = self._of_training(self._ended(began))
            share = self._neighbours.share(before, self._neighbours.look())
            if share is None or share <= MAX_SHARE or not self._alone:
                break
            if repeat == MAX_REPEATS or self._report.num_void == MAX_VOID:
                self._report.num_noisy += 1
                break
            self._report.num_void += 1
        self._report.blocks.append((knob, times))
        self._report.block_spans.append((since, monotonic()))

    def _began(self) -> float:
        """Return the second at which what is timed now began."""
        boundary = self._probe.boundary
        began = boundary.clock.read() * 1e-9
        self._times, self._interrupted = [], [boundary.num_interrupted]
        return began

    def _ended(self, began: float) -> list[float]:
        """Return the seconds of each step since then."""
        self._times[-1] = self._probe.boundary.clock.read() * 1e-9
        return [after - before for before, after in pairwise([began, *self._times])]

    def _of_training(self, spent: list[float]) -> list[float]:
        """Return what steps took without those of an evaluation, a rollout or a new epoch, now and then."""
        boundary = self._probe.boundary
        if boundary.num_interrupted > RARE * boundary.steps:
            return spent
        interrupted = [after > before for before, after in pairwise(self._interrupted)]
        return [step for step, rare in zip(spent, interrupted, strict=True) if not rare] or spent

    def _timed(self, began: float, num: int = 0) -> Steps:
        """Let a block's steps go by; fewer where a knob makes them so slow that it would eat the others' time."""
        clock = self._probe.boundary.clock
        steps = num or self._shape.num_steps
        left, least = steps, max(2, steps // PARTS)
        while left > 0:
            now = min(left, least)
            yield now
            left -= now
            if (
                self._alone
                and self._usual_s is not None
                and clock.now() * 1e-9 - began > SLOW * self._usual_s
            ):
                break
        if self._usual_s is None:
            self._usual_s = clock.now() * 1e-9 - began

    def _write(self) -> None:
        """Write the report, whole or not at all."""
        if self._probe.folder is None:
            return
        path = self._probe.folder / f"whatif-{os.getpid()}.json"
        scratch = path.with_suffix(".part")
        scratch.write_text(json.dumps(vars(self._report)))
        scratch.replace(path)
        self._written_s = monotonic()


def memory(times: list[float]) -> int:
    """Return for how many steps after a switch the times still differ from those that follow."""
    if len(times) < 4:
        return 0
    later = times[len(times) // 2 :]
    usual = median(later)
    scatter = median([abs(spent / usual - 1) for spent in later])
    limit = max(MEMORY, SCATTERS * scatter)
    still = [index for index, spent in enumerate(times[: len(times) // 2]) if abs(spent / usual - 1) > limit]
    run = 0
    while run in still:
        run += 1
    return min(run, MAX_MEMORY)
