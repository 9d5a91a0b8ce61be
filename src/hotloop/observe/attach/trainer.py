"""Which process to look at: the one that was named, or the Python that a shell or launcher of that number started."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator

import psutil

from hotloop.model.errors import HotloopError
from hotloop.model.secrets import redacted_words

_PYTHONS = ("python", "pypy")
_SHOWN = 60
"""Columns of a command in a list to choose from."""


def trainer(pid: int) -> int:
    """Return the process itself where it runs Python, else the only Python process that it started.

    Raises:
        HotloopError: there is no such process, or it started no Python, or several.
    """
    try:
        asked = psutil.Process(pid)
        if _is_python(asked):
            return pid
        found = list(_started(asked))
    except psutil.NoSuchProcess as error:
        raise HotloopError(f"there is no process {pid}", "pgrep -af train.py lists some") from error
    except psutil.AccessDenied:
        return pid  # py-spy says what is missing
    if len(found) == 1:
        return found[0].pid
    if not found:
        raise HotloopError(
            f"process {pid} is no Python, and started none",
            "give the process that trains: pgrep -af train.py",
        )
    choices = "\n".join(f"{one.pid}: {_command(one)}" for one in found)
    raise HotloopError(
        f"process {pid} is no Python, and started {len(found)} that are:\n{choices}",
        "name the one that trains: hotloop observe --pid PID",
    )


def _started(process: psutil.Process) -> Iterator[psutil.Process]:
    """Yield the topmost Python processes below one; what they started is looked at with them."""
    for child in process.children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if _is_python(child):
                yield child
            else:
                yield from _started(child)


def _is_python(process: psutil.Process) -> bool:
    names = [process.name()]
    with contextlib.suppress(psutil.AccessDenied):
        names.append(os.path.basename(process.exe()))
    return any(name.startswith(_PYTHONS) for name in names)


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        text = shlex.join(redacted_words(process.cmdline()))
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return "?"
