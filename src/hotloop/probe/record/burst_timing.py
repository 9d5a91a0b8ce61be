"""When the phases of a step are timed, and when only its end is: short steps are timed in bursts.

Timing one pass through forward and backward costs some 60 us on a slow core, which is much of a step of a millisecond.
Between bursts the recorder is lean: hook points take themselves out, and one that could not looks at a flag and does
nothing. After kernels that have cleared the caches a Python frame costs 5 us, whatever is in it: hence out, not silent.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol

from hotloop.probe.record.events import Kind, begin, end
from hotloop.probe.record.recorder import Recorder

BURST = 64
"""Steps timed in a row."""
FIRST_STEPS, FIRST_NS = 512, 2_000_000_000
"""All steps are timed until so many, and so much time, have gone by."""
PASS_NS = 60_000
"""What timing one pass costs: measured on a Zen 3 at 2.4 GHz, in programs whose kernels clear its caches."""
SHARE = 0.003
"""Of the time, what timing may cost."""
LONGEST = 32
"""At most so many bursts' worth of steps go by between two."""
SETTLED = 32
"""Steps after which the root modules are known, so that their hooks can leave."""
INTERRUPTED = 1 / 8
"""Share of the steps between two bursts that may hold a new epoch or an evaluation; with more, all steps are timed."""
NEVER = 1 << 60


class Counts(Protocol):
    """What the pace reads of the boundary."""

    num_backward: int
    num_evaluated: int
    """Steps in which a root was called without gradients."""

    def may_be_lean(self) -> bool:
        """Whether an optimizer's step ends the step, and nobody wants to look closer."""


class BurstTiming:
    """Decides at step boundaries whether the next steps are timed by phase.

    Args:
        recorder: whose flag it sets.
        counts: what has happened so far.
        lean: whether steps may be left untimed at all.
    """

    def __init__(self, recorder: Recorder, counts: Counts, *, lean: bool) -> None:
        self._recorder = recorder
        self._counts = counts
        self._lean = lean
        self.on_turn: list[Callable[[bool], None]] = []
        """Called when the recorder becomes lean (True) and when it no longer is: hook points go and come."""
        self.pass_ns = PASS_NS
        self._first_ns: int | None = None
        self._begun: tuple[int, int, int, int] | None = None
        """Of the burst under way: step, clock, backward calls, steps that evaluated."""
        self._until = 0
        """The step at which the next burst begins."""
        self._interruptions, self._allowed = 0, 0
        self.turn_at = 0 if lean or recorder.folder is None else NEVER
        """The step at whose boundary `turn` wants to be called."""

    def turn(self, steps: int, now: int) -> None:
        """Begin or end a burst; called at a boundary.

        Args:
            steps: how many there were.
            now: the clock, in nanoseconds.
        """
        recorder = self._recorder
        if recorder.folder is None:  # nothing is kept: there is nothing to time
            if steps >= SETTLED and self._counts.may_be_lean():
                self._become(lean=True)
            self.turn_at = NEVER if recorder.lean else steps + 1
        elif steps < self._until:
            if self._interruptions <= self._allowed:
                self._rest(steps)
            else:  # a rest that is broken again and again costs more than timing every step
                self._lean = False
                self._begin(steps, now)
        elif recorder.lean or self._begun is None:
            self.wake()
            self._begin(steps, now)
        else:
            self._judge(steps, now, *self._begun)

    def wake(self) -> None:
        """Time by phase what comes until the next boundary, at the least."""
        recorder = self._recorder
        if recorder.lean and recorder.folder is not None and get_ident() == recorder.thread:
            self._become(lean=False)
            recorder.mark(end(Kind.LEAN))
            self._interruptions += 1
            self.turn_at = 0

    def after_fork(self) -> None:
        """In a forked child: it has its own steps."""
        self._become(lean=False)
        self._first_ns = self._begun = None
        self._until = self._interruptions = 0
        self.turn_at = 0 if self._lean or self._recorder.folder is None else NEVER

    def _begin(self, steps: int, now: int) -> None:
        if self._first_ns is None:
            self._first_ns = now
        self._begun = (steps, now, self._counts.num_backward, self._counts.num_evaluated)
        self._until, self._interruptions = 0, 0
        self.turn_at = steps + BURST if self._lean else NEVER

    def _judge(self, steps: int, now: int, begun: int, begun_ns: int, backward: int, evaluated: int) -> None:
        """End a burst: rest for as long as keeps the cost within its share."""
        counts = self._counts
        assert self._first_ns is not None
        evaluates = counts.num_evaluated - evaluated > BURST // 4
        early = steps < FIRST_STEPS or now - self._first_ns < FIRST_NS
        passes = max(counts.num_backward - backward, steps - begun)
        cost = passes * self.pass_ns / max(1, now - begun_ns)
        num = int(BURST * min(LONGEST, cost / SHARE - 1))
        if early or evaluates or num <= 0 or not counts.may_be_lean():
            self._begin(steps, now)
            return
        self._begun = None
        self._until, self._allowed = steps + num, int(num * INTERRUPTED)
        self._rest(steps)

    def _rest(self, steps: int) -> None:
        recorder = self._recorder
        if not self._counts.may_be_lean():
            self._until = steps
            self.turn_at = steps + 1
            return
        if not recorder.lean:
            self._become(lean=True)
            recorder.mark(begin(Kind.LEAN))
        self.turn_at = self._until

    def _become(self, *, lean: bool) -> None:
        self._recorder.lean = lean
        for call in self.on_turn:
            call(lean)

    def swap_while_lean(self, owner: Any, name: str, usual: Any, lean_one: Any) -> None:
        """Let `lean_one` stand in its place while the recorder is lean, unless somebody else has put theirs there."""

        def turn(lean: bool) -> None:
            here, there = (usual, lean_one) if lean else (lean_one, usual)
            if vars(owner).get(name) is here:
                setattr(owner, name, there)

        self.on_turn.append(turn)
