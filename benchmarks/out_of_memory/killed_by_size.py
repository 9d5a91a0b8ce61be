"""`killed_by_size.py BYTES ARGS...`: hotloop, and a thread that kills its program as the kernel does when it is large.

No cgroup of its own is needed: the kernel's count of processes that it killed is replaced by this thread's.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import psutil

from hotloop.__main__ import main
from hotloop.observe.run import first_run

kills = 0


def _kill_large(limit: int) -> None:
    global kills  # noqa: PLW0603 - what the kernel counts is global too
    while True:
        for child in psutil.Process().children(recursive=True):
            try:
                if child.memory_info().rss > limit:
                    os.kill(child.pid, signal.SIGKILL)
                    kills += 1
            except (psutil.NoSuchProcess, ProcessLookupError):
                continue
        time.sleep(0.02)


if __name__ == "__main__":
    threading.Thread(target=_kill_large, args=(int(sys.argv.pop(1)),), daemon=True).start()
    setattr(first_run, "num_kills", lambda: kills)  # noqa: B010 - stands for the kernel's count
    sys.exit(main())
