"""Counts steps and holds or ends the program at their boundaries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any, Protocol

from hotloop.probe.control.control_page import (
    BLOCK_AT,
    BLOCK_NS,
    DEEP,
    GO_UNTIL,
    INTERRUPTED,
    STEPS,
    STOP,
    ControlPage,
    Seat,
)
from hotloop.probe.control.running_clock import RunningClock
from hotloop.probe.process.rank import rank_and_world
from hotloop.probe.record.burst_timing import BurstTiming
from hotloop.probe.record.events import Kind, begin, end
from hotloop.probe.record.recorder import Recorder

_OPTIMIZER, _BACKWARD, _EVALUATE = Kind.OPTIMIZER, Kind.BACKWARD, Kind.EVALUATE
KINDS = {
    "optimizer": Kind.OPTIMIZER,
    "backward": Kind.BACKWARD,
    "forward": Kind.EVALUATE,
    "request": Kind.REQUEST,
}
PATIENCE = 8
"""Backward calls without an optimizer step (forwards without a backward) after which they count as steps
themselves while the rhythm is not known; more than the accumulation or critic loops of published scripts."""
PASSED = 31
"""Steps that go by between two looks at the control page while the recorder is lean."""
EARLY_STEPS, LOOK_EVERY, LOOK_EVERY_LEAN = 32, 8, 128


class Windows(Protocol):
    """The profilers, as the boundary knows them."""

    numbers: Any
    settled: int
    """The page's wish that has been met."""

    def ended(self, kind: Kind, slot: int) -> None:
        """Called at what may end a step, while the page's wish is not met."""

    def finish(self) -> None:
        """End the window that is open, if one is."""

    def after_fork(self) -> None:
        """Called in a forked child."""


class Boundary:
    """The step boundary of this process.

    Args:
        anchor: `(kind, slot, every)` of the event that ends a step; None: a provisional one is used.
        folder: where seats on the control page are taken.
        recorder: told of pauses, flushed at boundaries.
        page: the control page; None: nobody holds this program.
        lean: whether short steps are timed in bursts alone.
    """

    def __init__(
        self,
        anchor: tuple[str, int, int] | None,
        folder: Path | None,
        recorder: Recorder,
        page: ControlPage | None,
        *,
        lean: bool = False,
    ) -> None:
        self._anchor = anchor
        self._folder = folder
        self._recorder = recorder
        self._page = page
        self._seat: Seat | None = None
        self._early: Seat | None = None
        """Where it waited before its first forward; a process may forward and never step."""
        self.starts = page is not None
        """It may have to wait before its first forward."""
        self._alone: bool | None = None
        """Whether this process is the only rank; None: not asked yet."""
        self._wanted = KINDS[anchor[0]] if anchor else None
        # Plain attributes: hashing a member of an IntEnum is a Python call, and this is the hot path.
        self.num_optimizer = self.num_backward = self._num_evaluate = 0
        self.num_evaluated = 0
        """Steps in which a root was called without gradients."""
        self._evaluated_at = -1
        self.num_interrupted = 0
        """Steps in which a root was called without gradients, or a loader was iterated anew."""
        self._interrupted_at = -1
        self._seen = 0
        self.steps = 0
        self.pace = BurstTiming(recorder, self, lean=lean)
        self.never_trained = True
        """This process has called neither backward nor an optimizer: it may be inference."""
        self.on_step: list[Callable[[int], None]] = []
        self.on_look: list[Callable[[int], None]] = []
        """Called after each of the first steps, then after every eighth, and at times while the recorder is lean."""
        self.look_at = 0
        self.on_hold: list[Callable[[], None]] = []
        self.windows: Windows | None = None
        """The profilers; None: none is wanted."""
        self.clock = RunningClock()
        """What blocks of steps are timed by."""
        self._block_began = 0

    def ended(self, kind: Kind, slot: int) -> None:
        """Called when an optimizer step, a backward or a forward without gradients has ended, or a request begins."""
        if kind is _OPTIMIZER:
            self.num_optimizer += 1
            self.never_trained = False
            provisional = True
        elif kind is _BACKWARD:
            self.num_backward += 1
            self.never_trained = False
            provisional = self.num_optimizer == 0 and self.num_backward > PATIENCE
        elif kind is _EVALUATE:
            self._num_evaluate += 1
            if self._evaluated_at != self.steps:
                self._evaluated_at = self.steps
                self.num_evaluated += 1
                self.interrupted()
            provisional = self.never_trained and self._num_evaluate > PATIENCE
        else:
            provisional = False
        if self._wanted is None:
            if provisional:
                self._step()
        elif kind is self._wanted:
            self._count(slot)
        deep = self.windows
        if deep is not None and deep.numbers[DEEP] != deep.settled:
            self.pace.wake()
            deep.ended(kind, slot)

    def before_first_forward(self) -> None:
        """Wait, where the launcher has not said that steps may be taken: then the first of them is taken alone.

        In it kernels are chosen by timing them, and models are compiled. Ranks do not wait: one may need another to
        come to its first forward.
        """
        self.starts = False
        page = self._page
        if page is None or self.steps or page.numbers[GO_UNTIL] > 0 or rank_and_world()[1] > 1:
            return
        self._early = seat = self._take_seat(page)
        self._hold(seat, 0)
        seat.leave()
        self._seat = None

    def interrupted(self) -> None:
        """Called when something goes on that is no step of training: an evaluation, or the start of an epoch."""
        if self._interrupted_at != self.steps:
            self._interrupted_at = self.steps
            self.num_interrupted += 1

    def may_be_lean(self) -> bool:
        """Whether an optimizer's step ends the step, and nobody wants to look closer."""
        deep = self.windows
        return (
            self.num_optimizer > 0
            and self._wanted in (None, _OPTIMIZER)
            and not (deep and deep.numbers[DEEP])
        )

    def may_pass(self) -> int:
        """Return how many steps may go by unseen: none where a launcher or another rank counts on each."""
        if self._anchor is not None or self.on_step or self._alone is False:
            return 0
        if self._alone is None:
            self._alone = rank_and_world()[1] == 1
            return 0
        return max(0, min(PASSED, self.look_at - self.steps - 1, self.pace.turn_at - self.steps - 1))

    def pass_by(self, num: int) -> None:
        """Count steps that went by unseen."""
        self.num_optimizer += num
        self.steps += num

    def looked(self, number: int) -> None:
        """Say on the control page that an instrument was run here."""
        if self._page is not None:
            (self._seat or self._take_seat(self._page)).looked(number)

    def _count(self, slot: int) -> None:
        assert self._anchor is not None
        _, at, every = self._anchor
        if at in (-1, slot):
            self._seen += 1
            if self._seen % every == 0:
                self._step()

    def _step(self) -> None:
        self.steps += 1
        steps = self.steps
        for call in self.on_step:
            call(steps)
        if steps >= self.look_at:
            every = LOOK_EVERY_LEAN if self._recorder.lean else LOOK_EVERY
            self.look_at = steps + (every if steps >= EARLY_STEPS else 1)
            for call in self.on_look:
                call(steps)
        if steps >= self.pace.turn_at:
            self.pace.turn(steps, monotonic_ns())
        page = self._page
        if page is None:
            return
        seat = self._seat or self._take_seat(page)
        if page.numbers[BLOCK_AT] == steps:
            self._block_began = self.clock.read()
        now = monotonic_ns()
        recorder = self._recorder
        if now >= recorder.flush_at_ns:
            recorder.rest(now)
            if recorder.lost:
                seat.lost()
        numbers, at = seat.numbers, seat.at
        numbers[at + STEPS] = steps
        if steps >= numbers[GO_UNTIL] or numbers[STOP]:
            self._hold(seat, steps)

    def look_again(self) -> None:
        """Call `on_look` after the next step too."""
        self.look_at = 0

    def _take_seat(self, page: ControlPage) -> Seat:
        assert self._folder is not None
        if self._early is not None:
            self._seat = seat = self._early
            seat.enter()
            return seat
        try:
            self._seat = seat = Seat(page, self._folder)
        except (OSError, RuntimeError):  # no place, or no space, for one more process: nobody holds this one
            self._page = None
            raise
        return seat

    def _hold(self, seat: Seat, steps: int) -> None:
        seat.numbers[seat.at + BLOCK_NS] = self.clock.read() - self._block_began
        seat.numbers[seat.at + INTERRUPTED] = self.num_interrupted
        with self.clock.still():
            self._recorder.mark(begin(Kind.PAUSE))
            self._recorder.flush()
            for call in self.on_hold:
                call()
            seat.wait(steps)
            self._recorder.mark(end(Kind.PAUSE))
        if seat.numbers[BLOCK_AT] == steps:
            self._block_began = self.clock.read()

    def after_fork(self) -> None:
        """In a forked child: it has its own steps and its own seat."""
        if self.windows is not None:
            self.windows.after_fork()
        self._seat = self._early = None
        self.num_optimizer = self.num_backward = self._num_evaluate = self.num_evaluated = 0
        self.num_interrupted = 0
        self._seen = self.steps = 0
        self._evaluated_at = self._interrupted_at = -1
        self.never_trained = True
        self.pace.after_fork()
