"""What a gate says, whatever it judges, and how its command ends."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from hotloop.model.errors import ExitCode


class Outcome(str, Enum):
    """What a gate says."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"
    """The machine was too busy, or too little was measured."""

    @property
    def exit_code(self) -> ExitCode:
        """How a command ends with it."""
        return _CODES[self]


_CODES = {
    Outcome.PASSED: ExitCode.DONE,
    Outcome.FAILED: ExitCode.GATE,
    Outcome.NOT_JUDGED: ExitCode.UNDECIDED,
}


def of_all(outcomes: Iterable[Outcome]) -> Outcome:
    """Return what several gates say together: one that fails is enough, and so is one that could not judge."""
    found = set(outcomes)
    return next((one for one in (Outcome.FAILED, Outcome.NOT_JUDGED) if one in found), Outcome.PASSED)
