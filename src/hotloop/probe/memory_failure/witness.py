"""Whether memory ran out in this process, and whether the program ended with it or caught it and went on.

The exception that ends a program is kept by Python (`sys.last_value`) until its end, with the frames that it went
through and what they hold. One that the program catches is gone by then: it is looked at where it passes (`passing`),
shortly, since the program may go on.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hotloop.probe.memory_failure import passing
from hotloop.probe.memory_failure.report_file import (
    failure_path,
    lines_of_frame,
    lines_of_traceback,
    mark_failure,
    write_brief,
    write_failure,
)
from hotloop.probe.memory_failure.reserve import Reserve
from hotloop.probe.memory_failure.room import kernel_kills
from hotloop.probe.memory_failure.words import STEM, says_child_was_killed, says_out_of_memory
from hotloop.probe.probe import Probe

BACKWARD = "backward"
_MARK = "_hotloop_counted"
"""Attribute of an exception that has been counted, the phase: the same one passes several looks."""


def install(probe: Probe) -> None:
    """Look when the interpreter ends, and where exceptions pass.

    Whatever that needs is imported, and put aside, now.
    """
    witness = Witness(probe)
    if not probe.config.follow_memory:  # where each operation that fails is seen
        passing.install(probe, witness)
    atexit.register(witness.at_exit)


class Witness:
    """What this process knows of its failures for want of memory.

    Args:
        probe: of the process.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._folder = probe.folder
        self._reserve = Reserve()
        self._num = 0
        """Failures that were seen."""
        self._went_on = True
        """A backward pass has ended well since the last of them."""
        self._died = False
        """The program, or a thread of it, ended with the last of them."""
        self._kills = kernel_kills()
        self._killed = False
        """The program ended because the kernel had killed a process that this one started."""

    def passes(self, phase: str | None = None) -> None:
        """Count an exception that is being handled, where it says so: the program may catch it."""
        handled = sys.exc_info()[1]
        if handled is None or hasattr(handled, _MARK):
            return
        with self._probe.survive("memory failure"):
            error = says_out_of_memory(handled)
            if error is not None and self._is_new(error, phase):
                self._brief(error, phase)

    def after_backward(self) -> None:
        """Know that training goes on, or count what ended the pass."""
        handled = sys.exc_info()[1]
        if handled is not None and not hasattr(handled, _MARK):
            self.passes(BACKWARD)
        elif not self._went_on:
            self._went_on = True
            with self._probe.survive("memory failure"):
                self._mark()

    def made(self, error: BaseException) -> None:
        """Count an error of a device's allocator: as it is made, it has not passed anything yet."""
        with self._probe.survive("memory failure"):
            if self._is_new(error):
                self._brief(error, None)

    def ends(self) -> None:
        """Describe an exception that is being handled, where it says so: the program, or a thread, ends with it."""
        handled = sys.exc_info()[1]
        if handled is None:
            return
        with self._probe.survive("memory failure"):
            error = says_out_of_memory(handled)
            if error is not None and (self._is_new(error) or not self._went_on):
                self._full(error)

    def at_exit(self) -> None:
        """Describe the exception that ends the program, where it says so; tell the user where nobody else does."""
        with self._probe.survive("memory failure"):
            last = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            error = says_out_of_memory(last)
            self._killed = error is None and says_child_was_killed(last) and kernel_kills() != self._kills
            if self._killed:
                error = last
            if error is not None and not (self._num == 0 and self._is_told()):
                self._full(error)
            if self._probe.folder is None and self._folder is not None:
                self._report(self._folder)

    def _is_new(self, error: BaseException, phase: str | None = None) -> bool:
        """Count an exception, unless that was done."""
        if hasattr(error, _MARK):
            return False
        error.__dict__[_MARK] = phase
        self._num += 1
        self._went_on = False
        return True

    def _is_told(self) -> bool:
        """Whether another process has told already: this one's error may be word of it."""
        return self._folder is not None and any(self._folder.glob(f"{STEM}-*.json"))

    def _brief(self, error: BaseException, phase: str | None) -> None:
        """Write the first of those that the program may catch."""
        if self._num == 1:
            trace = error.__traceback__
            under = trace.tb_frame.f_back if trace is not None else sys._getframe()
            stack = lines_of_traceback(error) + lines_of_frame(under)
            with self._probe.boundary.clock.still():
                write_brief(self._place(), error, stack, self._reserve, phase=phase)
            self._reserve.take()
        self._mark()

    def _full(self, error: BaseException) -> None:
        self._died, self._went_on = True, False
        self._num = max(self._num, 1)
        phase, stack = getattr(error, _MARK, None), lines_of_traceback(error)
        write_failure(self._place(), error, stack, None, self._reserve, phase=phase)
        self._mark()

    def _mark(self) -> None:
        died = self._died and not self._went_on
        path = failure_path(self._place())
        mark_failure(path, num=self._num, died=died, went_on=self._went_on, killed=self._killed)

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="hotloop-"))
        return self._folder

    def _report(self, folder: Path) -> None:
        """Let another process tell the user, on standard error."""
        try:
            command = [*self._probe.config.memory_reporter, str(folder)]
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
