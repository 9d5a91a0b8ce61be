"""Which process to look at: the one that was named, or the newest training process below it."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import psutil

from hotloop.model.errors import HotloopError
from hotloop.model.secrets import redacted_words

_PYTHONS = ("python", "pypy")
_SHOWN = 60
"""Columns of a command in a list to choose from."""


def trainer(pid: int) -> int:
    """Return the process itself where it runs Python, else the newest training process below it; never hotloop.

    Args:
        pid: of a training process, or of the shell, launcher or `hotloop run` that started it.

    Raises:
        HotloopError: there is no such process, no Python below it, or several of which none has loaded torch.
    """
    try:
        asked = psutil.Process(pid)
        if _is_python(asked) and not _is_hotloop(asked):
            return pid
        found = list(_started(asked))
    except psutil.NoSuchProcess as error:
        raise HotloopError(f"there is no process {pid}", "pgrep -af train.py lists some") from error
    except psutil.AccessDenied:
        return pid  # py-spy says what is missing
    training = [one for one in found if _has_torch(one)]
    if training:
        return max(training, key=_began).pid
    if len(found) == 1:
        return found[0].pid
    if not found:
        raise HotloopError(
            f"process {pid} does not train, and no Python runs below it",
            "give the process that trains: pgrep -af train.py",
        )
    choices = "\n".join(f"{one.pid}: {_command(one)}" for one in found)
    raise HotloopError(
        f"none of the {len(found)} Python processes below process {pid} has loaded torch:\n{choices}",
        "name the one that trains: hotloop observe --pid PID",
    )


def _started(process: psutil.Process) -> Iterator[psutil.Process]:
    """Yield the topmost Python processes below one, hotloop's own left out; below them is looked at with them."""
    for child in process.children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if child.pid == os.getpid():
                continue
            if _is_python(child) and not _is_hotloop(child):
                yield child
            else:
                yield from _started(child)


def _is_hotloop(process: psutil.Process) -> bool:
    """Whether it is a `hotloop` command: the console script, or `python -m hotloop`."""
    words = process.cmdline()[1:]
    return any(
        os.path.basename(word) == "hotloop" and (at == 0 or words[at - 1] == "-m")
        for at, word in enumerate(words[:4])
    )


def _has_torch(process: psutil.Process) -> bool:
    with contextlib.suppress(OSError):
        return "libtorch" in Path(f"/proc/{process.pid}/maps").read_text(errors="replace")
    return False


def _began(process: psutil.Process) -> tuple[float, int]:
    """Return when it began; of one clock tick the higher number is the newer."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return float(process.create_time()), process.pid
    return 0.0, process.pid


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
