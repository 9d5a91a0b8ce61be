"""How long the threads of this process were on a CPU, as the kernel counts it."""

from __future__ import annotations

import threading


class ThreadClocks:
    """Tells what each thread has used since it was last asked for."""

    def __init__(self) -> None:
        self._used: dict[int, int] = {}
        """Nanoseconds, by the kernel's number of a thread."""

    def used_since(self, ident: int) -> int | None:
        """Return nanoseconds, 0 where a thread is asked for the first time; None: nothing tells.

        Args:
            ident: of a thread of `threading`. Others have a clock, too, but to ask for it when the thread has just
                ended crashes the process.
        """
        thread = threading._active.get(ident)  # type: ignore[attr-defined]  # `enumerate` would wait for a lock
        number = (thread.native_id if thread is not None else None) or 0
        try:
            with open(f"/proc/self/task/{number}/schedstat", "rb", buffering=0) as file:
                used = int(file.read(64).split()[0])
        except (OSError, ValueError, IndexError):  # not on Linux; a kernel without it; the thread has ended
            return None
        before = self._used.get(number, used)
        self._used[number] = used
        return used - before
