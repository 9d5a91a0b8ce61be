"""A run of the user's command: started, held still, thawed and ended together with everything it started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from hotloop.launch.isolation.decide import Isolation, guarded_environment, wrap
from hotloop.launch.log_tail import without_report
from hotloop.launch.no_input import NoInput
from hotloop.launch.process_ids import ProcessIds
from hotloop.launch.watchdog import guard
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.probe.process.config import VARIABLE

_PR_SET_CHILD_SUBREAPER = 36
MINDER_PATIENCE_S = 8.0
"""The subreaper gives processes that wait for a device five seconds."""
REPORT_BYTES = 16 << 10
"""Of torchrun's report on the ranks that failed: 3 KB for two, and 0.3 more for each further one."""


class Run:
    """One run of a command, and all processes below it.

    Args:
        process: the started command.
        scratch: its folder.
        log: where its output went; None: to the user's terminal.
        lifeline: the writing end of the pipe that keeps the run alive; None: nothing minds it.
        no_input: its standard input, where it was given nothing to read.
        isolation: what it runs in. With a namespace of processes the first one below the subreaper is none of the
            program's: it is the init of that.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        scratch: Path,
        log: Path | None,
        lifeline: int | None = None,
        no_input: NoInput | None = None,
        *,
        isolation: Isolation | None = None,
    ) -> None:
        self.process = process
        self.scratch = scratch
        self.log = log
        self._lifeline = lifeline
        self._no_input = no_input
        self.isolation = isolation or Isolation()
        self.ids = ProcessIds(self.tree)
        """Its processes under the numbers that they know."""

    @property
    def pid(self) -> int:
        """The process that the run is below: its subreaper, or the command itself where it has none."""
        return self.process.pid

    def exit_code(self) -> int | None:
        """Return how the command ended; None while it runs; a signal as 128 + its number, as a shell says it."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def tree(self) -> list[psutil.Process]:
        """Return the command and all that is alive below it, without what must not stop: subreaper, init."""
        try:
            top = psutil.Process(self.pid)
            below = top.children(recursive=True)
            if self.isolation.processes:
                below = [one for one in below if one.ppid() != self.pid]
        except psutil.NoSuchProcess:
            return []
        return [top, *below] if self._lifeline is None else below

    def lives(self, pid: int) -> bool:
        """Whether one of its processes, under the number that it knows itself by, is alive."""
        return self.ids.lives(pid)

    def outside(self, pid: int) -> int | None:
        """Return the number of one of its processes as it is seen from here; None: it is not there."""
        return self.ids.outside(pid)

    def freeze(self) -> None:
        """Stop every process of the run, loader workers too: a frozen run takes no CPU and fills no queue."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen run go on."""
        self._signal(signal.SIGCONT)

    def end(self) -> int | None:
        """Kill everything below the run, without running the user's shut-down code; return the exit code."""
        if self._lifeline is not None:
            os.close(self._lifeline)  # the subreaper ends the rest, orphans in sessions of their own too
            self._lifeline = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=MINDER_PATIENCE_S)
        for _ in range(3):  # a process may start another while it is killed
            alive = self.tree()
            if not alive:
                break
            for process in alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(alive, timeout=5)
        self.process.wait(timeout=10)
        self._end_orphans()
        if self._no_input is not None:
            self._no_input.close()
        return self.exit_code()

    def _end_orphans(self) -> None:
        """Kill what the command left behind and this process inherited; its environment names the scratch folder."""
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.environ().get(VARIABLE, "").startswith(str(self.scratch)):
                    process.kill()
                    process.wait(timeout=2)

    def wait(
        self, until: Callable[[], bool], *, poll_s: float = 0.02, timeout_s: float | None = None
    ) -> bool:
        """Wait until something holds; return False when the run ended or the time was over first."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not until():
            if self.process.poll() is not None:
                return until()
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(poll_s)
        return True

    def log_end(self, num_lines: int = 12, *, report: bool = False) -> str:
        """Return the end of the output, for a message.

        Args:
            num_lines: so many lines.
            report: with torchrun's on the ranks that failed, which comes after what they said themselves.
        """
        if self.log is None or not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 512 * num_lines - REPORT_BYTES))
            text = file.read().decode(errors="replace")
        lines = text.splitlines()
        return "\n".join((lines if report else without_report(lines))[-num_lines:])

    def _signal(self, number: signal.Signals) -> None:
        for process in self.tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    isolation: Isolation,
    scratch: Path,
    *,
    log: Path | None = None,
    stdin: Path | None = None,
) -> Run:
    """Start the command.

    Args:
        argv: the command.
        environment: all of its environment.
        isolation: what it is kept from.
        scratch: an empty folder of its own.
        log: where its output goes; None: it keeps the user's terminal, standard input included.
        stdin: what it reads where it has a log; None: nothing.
    """
    become_reaper()
    guard(os.getpid())
    read, lifeline = _lifeline()
    wrapped = wrap(argv, isolation, scratch, Path.cwd(), read)
    own = log is not None
    output: IO[bytes] | None = log.open("wb") if log is not None else None
    no_input = NoInput() if own and stdin is None else None
    given = stdin.open("rb") if own and stdin is not None else None
    try:
        process = subprocess.Popen(
            wrapped,
            env={**environment, **guarded_environment(isolation, scratch)},
            pass_fds=() if read is None else (read,),
            stdout=output,
            stderr=subprocess.STDOUT if own else None,
            stdin=no_input.given if no_input is not None else given,
            start_new_session=own,
        )
    except OSError as error:
        if lifeline is not None:
            os.close(lifeline)
        if no_input is not None:
            no_input.close()
        raise HotloopError(
            f"the command could not be started: {error}",
            "check that the program can be executed",
            ExitCode.MACHINE,
        ) from error
    finally:
        if read is not None:
            os.close(read)
        if output is not None:
            output.close()
        if given is not None:
            given.close()
        if no_input is not None:
            no_input.was_given()
    return Run(process, scratch, log, lifeline, no_input, isolation=isolation)


def _lifeline() -> tuple[int | None, int | None]:
    """A pipe between this process and the run's subreaper, which is a matter of Linux."""
    return os.pipe() if sys.platform == "linux" else (None, None)


def become_reaper() -> None:
    """Inherit orphans of the command, so that nothing it started outlives it (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
