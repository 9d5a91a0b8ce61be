"""How many pages the kernel maps in for this process in a step: buffers that are given back are faulted in anew."""

from __future__ import annotations

from contextlib import suppress


class PageFaults:
    """Counts minor page faults of all threads, at times, over the later half of the steps at least."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, int]] = []
        """Steps, each twice as many as before, and the faults until then."""
        self._last: tuple[int, int] | None = None
        self._ended = False

    def look(self, steps: int) -> None:
        """Take a count after so many steps; 1 us."""
        if self._ended:
            return
        with suppress(ImportError):  # Windows does not tell
            import resource

            self._last = steps, resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            if not self._kept or steps >= 2 * self._kept[-1][0]:
                self._kept.append(self._last)

    def after_fork(self) -> None:
        """In a forked child, whose own faults are counted from nothing."""
        self._kept.clear()
        self._last = None

    def end(self) -> None:
        """Count no more: what comes now is a profiler's."""
        self._ended = True

    def per_step(self) -> float | None:
        """Return the faults of a step; None: there were too few steps, or the system does not tell."""
        if self._last is None:
            return None
        steps, faults = self._last
        before = [kept for kept in self._kept if 2 * kept[0] <= steps]
        return (faults - before[-1][1]) / (steps - before[-1][0]) if before else None
