"""Nothing outlives hotloop: when it dies, even by SIGKILL, a small process ends its runs and sweeps up.

Runs are frozen most of the time, so they cannot notice by themselves that nobody will thaw them any more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys

import psutil

from hotloop.launch.isolation.scratch import belongs_to, remove, scratch_root
from hotloop.probe.process.config import VARIABLE


@functools.cache
def guard(owner: int) -> None:
    """Start the watchdog of this process, once; it holds a pipe that closes when the owner is gone."""
    read, write = os.pipe()
    os.set_inheritable(write, False)
    subprocess.Popen(
        [sys.executable, "-m", "hotloop.launch.watchdog", str(owner)],
        stdin=read,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read)


def main(owner: int) -> None:
    """Wait until the owner is gone, then end what it started."""
    sys.stdin.buffer.read()
    folders = [folder for folder in scratch_root().iterdir() if belongs_to(folder, owner)]
    prefixes = tuple(str(folder) for folder in folders)
    for process in psutil.process_iter() if prefixes else ():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(VARIABLE, "").startswith(prefixes):
                process.kill()
    for folder in folders:
        remove(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]))
