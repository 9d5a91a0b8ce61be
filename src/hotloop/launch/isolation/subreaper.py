"""The parent of a run's command: everything that the command starts ends with it, and with hotloop.

It inherits what the command leaves behind (a child under `env -i setsid`, a daemon), and holds a pipe that closes when
hotloop is gone, however it went. It sleeps in between; its memory is that of a bare Python, about 8 MB.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PATIENCE_S = 5.0
"""For processes that the kernel cannot end at once: those that wait for a device."""
_OURS = ("SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGTSTP", "SIGUSR1", "SIGUSR2")
"""Sent to the whole group of processes; the command answers them."""


def mind(
    become_command: Callable[[], int], lifeline: int | None, at_end: Callable[[], None] | None = None
) -> int:
    """Start the command as a child, and return its exit code when it and all it started have ended.

    A command that a signal ended takes this process with it by the same signal.

    Args:
        become_command: replaces the child by the command; returns an exit code if it cannot.
        lifeline: the reading end of a pipe whose writing end hotloop holds; None: nobody does.
        at_end: called when the command has ended.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    subreaper = os.getpid()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    child = os.fork()
    if child == 0:
        for descriptor in (wake, woken, lifeline):
            if descriptor is not None:
                os.close(descriptor)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() not in (subreaper, 0):  # 0: it is in another namespace
            os._exit(1)
        os._exit(become_command())
    _ignore_ours()
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    status = _wait(child, lifeline, wake)
    if at_end is not None:
        at_end()
    if status is None:
        status = _end_all(child)
    else:
        _end_all(child)
    return _as_it_ended(status)


def as_init(become_command: Callable[[], int], *, new_session: bool) -> int:
    """Start the command as a child of the first process in a namespace, and return its exit code.

    All that is left in the namespace ends with this process. The command is not the first process itself: the kernel
    keeps signals from that one.

    Args:
        become_command: replaces the child by the command; returns an exit code if it cannot.
        new_session: the command leads a session and a group of processes that it can name.
    """
    child = os.fork()
    if child == 0:
        if new_session:
            os.setsid()
        os._exit(become_command())
    _ignore_ours()
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _ignore_ours() -> None:
    for name in _OURS:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def _wait(child: int, lifeline: int | None, wake: int) -> int | None:
    """Return the child's status once it has ended; None: hotloop has gone."""
    while True:
        for pid, status in _reaped():
            if pid == child:
                return status
        ready, _, _ = select.select([wake] if lifeline is None else [lifeline, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        if lifeline is not None and lifeline in ready and not os.read(lifeline, 1):
            return None


def _reaped() -> list[tuple[int, int]]:
    ended = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((pid, status))
    return ended


def _end_all(child: int) -> int:
    """Kill everything below this process; return the child's status, killed unless it is known better."""
    status: int = signal.SIGKILL
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        for pid in _descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid, ended in _reaped():
            status = ended if pid == child else status
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            break
        time.sleep(0.001)
    return status


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                contextlib.suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as file,
            ):
                parents[int(name)] = int(file.read().rsplit(b")", 1)[1].split()[1])
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found - {os.getpid()}
        found |= more


def _as_it_ended(status: int) -> int:
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
