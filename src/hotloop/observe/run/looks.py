"""What the instruments saw, over several runs of a program: what is missing, and whether a further run may give it.

A program that ends, or goes into a long evaluation, before every instrument had its window is run again, with the
windows opened from its first steps on. Each of those runs goes on where the one before it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from hotloop.launch.deadline import Deadline
from hotloop.model.observation import Coverage, ProgramRun
from hotloop.model.quantities import counted, listed
from hotloop.observe.profile.windows import Ending, fitting
from hotloop.observe.run.pace import Pace

FIRST = 1
ENDED = "the program ended before it could be looked at closer"
_MIN_STEPS = 2
"""In which an instrument looks: with fewer a further run tells nothing."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What the instruments saw in one run.

    Attributes:
        values: what each saw.
        cut: those of them whose window was cut short.
        refused: those that cannot be used in this program, with the reason.
        ending: how it ended; None: none was put to use.
        wall_s: of the run.
        num_steps: that it took; None: not known.
        exit_code: of the program; None: it was ended.
        last_words: the end of its output, where it failed.
    """

    values: dict[str, Any] = {}
    cut: frozenset[str] = frozenset()
    refused: dict[str, str] = {}
    ending: Ending | None = None
    wall_s: float = 0.0
    num_steps: int | None = None
    exit_code: int | None = None
    last_words: str = ""


class Looks:
    """Gathers what the runs of one program gave.

    Args:
        names: the instruments wanted, the ones that matter most first.
        first: the run whose steps are shown.
    """

    def __init__(self, names: Sequence[str], first: Look) -> None:
        self._names = tuple(names)
        self._first = first
        self._runs = [first]
        self._source: dict[str, int] = {}
        self._values: dict[str, Any] = {}
        self._finished: set[str] = set()
        self._refused: dict[str, str] = {}
        self._take(first)

    def missing(self) -> tuple[str, ...]:
        """Return the instruments that a further run may give more of."""
        return tuple(name for name in self._names if name not in self._finished)

    def values(self) -> dict[str, Any]:
        """Return what was seen, by instrument; each value is of one run."""
        return dict(self._values)

    def further(self, pace: Pace, deadline: Deadline, again: Callable[[tuple[str, ...], float], Look]) -> str:
        """Run the program again while that brings it on; return why it is not run once more, empty: all was seen.

        Args:
            pace: of the first run.
            deadline: of these runs.
            again: runs the program, with some instruments that look for a part of their usual seconds.
        """
        while missing := self.missing():
            if deadline.left_s() < pace.startup_s + _MIN_STEPS * pace.step_s:
                return deadline.no_time
            names, scale = fitting(missing, pace.training_s)
            seen = again(names, scale)
            self._runs.append(seen)
            if not self._take(seen, alone=names[0]):
                return self._why_in_vain(seen, deadline)
        return ""

    def runs(self) -> tuple[ProgramRun, ...]:
        """Return the runs, with what came from each."""
        return tuple(
            ProgramRun(
                told=(*(("step",) if number == FIRST else ()), *self._from(number)),
                why="" if number == FIRST else self._why_again(),
                wall_s=run.wall_s,
                num_steps=run.num_steps,
                exit_code=run.exit_code,
            )
            for number, run in enumerate(self._runs, start=FIRST)
        )

    def gaps(self, why: str) -> Iterator[Coverage]:
        """Say what was not seen, and what is of another run than the steps.

        Args:
            why: a further run is not to be had.
        """
        for name, reason in self._refused.items():
            yield Coverage(name, reason)
        unseen = [name for name in self._names if name not in self._values and name not in self._refused]
        if unseen:
            yield Coverage(", ".join(unseen), why or ENDED)
        for number in range(FIRST + 1, len(self._runs) + 1):
            names = self._from(number)
            if names:
                yield Coverage(
                    f"{listed(names)} in the run of the steps",
                    f"seen in run {number} of the program, as {self._why_again()}",
                )

    def _take(self, seen: Look, alone: str | None = None) -> bool:
        """Keep what a run gave; return whether that brings the look on.

        Args:
            seen: the run.
            alone: the instrument that had the run from its first steps on: no further one gives more of it.
        """
        before = len(self._finished)
        for name, value in seen.values.items():
            whole = name not in seen.cut or name == alone
            if whole or name not in self._values:
                self._values[name], self._source[name] = value, len(self._runs)
            if whole:
                self._finished.add(name)
        for name, reason in seen.refused.items():
            self._refused[name] = reason
            self._finished.add(name)
        return len(self._finished) > before

    def _from(self, number: int) -> tuple[str, ...]:
        return tuple(name for name in self._names if self._source.get(name) == number)

    def _why_again(self) -> str:
        if self._first.ending is Ending.STUCK:
            return "no step came in the first one for longer than a restart takes"
        steps = self._first.num_steps
        after = f" after {counted(steps, 'step')}" if steps else ""
        return f"the first one ended{after}"

    def _why_in_vain(self, seen: Look, deadline: Deadline) -> str:
        if seen.exit_code:
            last = f": {seen.last_words}" if seen.last_words else ""
            return f"run {len(self._runs)} of the program failed with exit code {seen.exit_code}{last}"
        return deadline.no_time if seen.ending is Ending.NO_TIME else ENDED
