"""Nothing outlives hotloop: when it dies, even by SIGKILL, a small process ends its runs and sweeps up.

Runs are frozen most of the time, so they cannot notice by themselves that nobody will thaw them any more. Each run's
subreaper ends it too; this process is for what a subreaper cannot do: sweep, and end what lost its subreaper.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path

import psutil

import hotloop
from hotloop.launch.isolation.scratch import belongs_to, remove, scratch_root, sweep, sweep_memory
from hotloop.probe.process.config import VARIABLE

_START = "import sys; sys.path[:0] = sys.argv[2:]; from hotloop.launch.watchdog import main; main(int(sys.argv[1]))"


@functools.cache
def guard(owner: int) -> None:
    """Start the watchdog of this process, once; it holds a pipe that closes when the owner is gone."""
    read, write = os.pipe()
    os.set_inheritable(write, False)
    # Isolated: a module of the current folder or the user's environment must not take the place of a library's.
    places = [str(Path(module.__file__ or "").parents[1]) for module in (hotloop, psutil)]
    subprocess.Popen(
        [sys.executable, "-I", "-c", _START, str(owner), *dict.fromkeys(places)],
        stdin=read,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    os.close(read)


def main(owner: int) -> None:
    """Sweep what owners before left, wait until this one is gone, then end what it started."""
    with contextlib.suppress(OSError):
        sweep(scratch_root())
    sys.stdin.buffer.read()
    folders = [folder for folder in scratch_root().iterdir() if belongs_to(folder, owner)]
    prefixes = tuple(str(folder) for folder in folders)
    for process in psutil.process_iter() if prefixes else ():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(VARIABLE, "").startswith(prefixes):
                process.kill()
    for folder in folders:
        remove(folder)
    sweep(scratch_root())
    sweep_memory()
