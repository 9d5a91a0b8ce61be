"""The one error type that reaches the user."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process ends with; `hotloop run` ends with the program's own code instead."""

    DONE = 0
    GATE = 1
    """A gate or `--check` says no."""
    USAGE = 2
    PROGRAM_FAILED = 3
    """The user's program failed under observe, diagnose or tune."""
    MACHINE = 4
    """The machine does not allow it: no space, no permission, no torch."""
    UNDECIDED = 5
    """A gate could not judge: the machine was too busy, or too little was measured."""
    DEFECT = 70
    """hotloop itself is at fault (`EX_SOFTWARE` of sysexits.h); Python's own 1 would be a gate that says no."""
    INTERRUPTED = 130


class HotloopError(Exception):
    """Something the user has to know: what happened, why it matters, what to do next.

    Args:
        message: what happened, with the value seen, and why it matters.
        hint: what to type or change next.
        code: the exit code of the command.
    """

    def __init__(self, message: str, hint: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
