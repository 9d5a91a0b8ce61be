"""The clock that blocks of steps are timed by: it waits for the device, and stands still while the probe works.

On an asynchronous device the host only launches: N host steps say how fast the program launches, and a program that
launches less (graphs, compiled code, fused kernels) looks faster than it is. So both ends of a block are read after
the device has done all that it was given, and so is the beginning of whatever is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns


class RunningClock:
    """Nanoseconds of the program's own time; a block's time is the difference of two `read()`."""

    def __init__(self) -> None:
        self.synchronize: Callable[[], None] | None = None
        """Waits for every device that the program uses; None on a CPU."""
        self._still_ns = 0

    def drain(self) -> None:
        """Wait until the device has done what it was given."""
        if self.synchronize is not None:
            self.synchronize()

    def now(self) -> int:
        """Return the time at which the host is: the device may be behind."""
        return monotonic_ns() - self._still_ns

    def read(self) -> int:
        """Return the time at which the host and the device are."""
        self.drain()
        return self.now()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Take what happens inside off the program's time; the device's unfinished work is done before, and counts."""
        self.drain()
        began = monotonic_ns()
        try:
            yield
        finally:
            self._still_ns += monotonic_ns() - began
