"""A program on a clock of its own: it starts, takes steps, evaluates and ends, and its records and page tell so."""

from __future__ import annotations

import os
from pathlib import Path

from hotloop.probe.control.control_page import (
    DEEP,
    DEEP_DONE,
    DEEP_MS,
    HEADER,
    PID,
    RANK,
    STEPS,
    ControlPage,
)
from hotloop.probe.record.events import Kind, begin, end

from .synthetic import Script

WINDOW_STEPS, WINDOW_S = 3, 1.0
"""What every instrument of it wants."""


class FakeClock:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.program: SimulatedProgram | None = None

    def now(self) -> float:
        """Return its seconds."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time go by, and the program go on."""
        self.seconds += seconds
        if self.program is not None:
            self.program.go_on()


class SimulatedProgram:
    """Takes steps of one length; see the arguments.

    Args:
        clock: on which it runs.
        folder: of its records and its page.
        startup_s: before its first step.
        step_s: how long a step takes.
        num_steps: after which it ends.
        evaluation: after so many steps, so many seconds.
        slowed: how many times as long a step takes in a window.
    """

    def __init__(
        self,
        clock: FakeClock,
        folder: Path,
        *,
        startup_s: float = 3.0,
        step_s: float = 0.1,
        num_steps: int = 10**9,
        evaluation: tuple[int, float] = (0, 0.0),
        slowed: float = 1.0,
    ) -> None:
        self.page = ControlPage.create(folder / "control")
        self.begin_s = clock.now()
        self.ordered: list[int] = []
        """The instruments that were asked for."""
        self._clock = clock
        self._script = Script(folder, os.getpid())
        self._step_s, self._num_steps, self._evaluation = step_s, num_steps, evaluation
        self._slowed = slowed
        self._script.now = int(1e9 * (self.begin_s + startup_s))
        self._steps = self._window = self._settled = 0
        self._window_began_s = 0.0
        self._window_steps = 0
        clock.program = self

    def exit_code(self) -> int | None:
        """Return 0 when it has taken all steps."""
        return 0 if self._steps >= self._num_steps else None

    def lives(self, pid: int) -> bool:
        """It is this process."""
        return pid == os.getpid()

    def outside(self, pid: int) -> int:
        """It is seen as it sees itself."""
        return pid

    def go_on(self) -> None:
        """Take the steps that fit into the time until now."""
        before = self._steps
        while self.exit_code() is None and self._script.now * 1e-9 + self._length_s() <= self._clock.now():
            self._step()
        if self._steps != before:
            self._script.write()
            for at, value in ((PID, os.getpid()), (RANK, -1), (STEPS, self._steps)):
                self.page.numbers[HEADER + at] = value

    def _length_s(self) -> float:
        return self._step_s * (self._slowed if self._window else 1.0)

    def _step(self) -> None:
        length_ms = 1000 * self._length_s()
        self._script.mark(begin(Kind.FORWARD)).wait(length_ms / 2).mark(end(Kind.FORWARD))
        self._script.span(Kind.BACKWARD, length_ms / 4)
        self._script.span(Kind.OPTIMIZER, length_ms / 4)
        self._steps += 1
        self._look(self._script.now * 1e-9)
        after, evaluated_s = self._evaluation
        if self._steps == after:
            self._script.now += int(1e9 * evaluated_s)

    def _look(self, now_s: float) -> None:
        """Open and close windows at a boundary, as `DeepWindows` does."""
        wanted = self.page.numbers[DEEP]
        if not wanted:
            self._window = self._settled = 0
        elif not self._window and wanted != self._settled:
            self._window, self._window_began_s, self._window_steps = wanted, now_s, 0
            self.ordered.append(wanted)
        elif self._window:
            self._window_steps += 1
            spent_s = now_s - self._window_began_s
            enough = spent_s >= WINDOW_S and self._window_steps >= WINDOW_STEPS
            if enough or spent_s >= (self.page.numbers[DEEP_MS] / 1000 or 15.0):
                self.page.numbers[HEADER + DEEP_DONE] = self._settled = self._window
                self._window = 0


class NoNetwork:
    """A network that the simulated program does not use."""

    def look(self) -> None:
        """There is nothing to see."""

    def waits(self) -> bool:
        """It waits for nobody."""
        return False

    def trains(self) -> None:
        """It needs nothing."""
