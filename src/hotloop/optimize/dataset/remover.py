"""A folder that goes when the program has ended, also where a signal ended it and nothing of Python ran any more."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

_WAIT = """
import os, shutil, sys
if os.fork():
    os._exit(0)
os.setsid()
sys.stdin.buffer.read()
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
"""Waits at a pipe for its end. It is no child of the program's, which may count or wait for its own."""


def remove_when_all_have_ended(folder: Path) -> int | None:
    """Have a small process remove a folder once this process and what it has forked are gone.

    Returns:
        A descriptor that must stay open, in this process and in forked workers; closed everywhere, the folder goes.
        None: no process can be started, so that the next program that makes such a folder sweeps this one.
    """
    with contextlib.suppress(OSError):
        read, write = os.pipe()
        try:
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", _WAIT, str(folder)],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                check=False,
            )
        except OSError:
            os.close(write)
            raise
        finally:
            os.close(read)
        return write
    return None
