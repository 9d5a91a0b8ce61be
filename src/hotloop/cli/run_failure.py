"""What `hotloop run` says of a program that ran out of memory.

`hotloop run` becomes the program, so nobody waits for its end: at that end the program's own process starts this one.
What the kernel kills tells nothing.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil

from hotloop.cli.stored import show_out_of_memory, stored_or_told
from hotloop.launch.command import resolve, script_of
from hotloop.machine.host.identity import identity
from hotloop.model.observation import Observation
from hotloop.observe.build import build
from hotloop.observe.run.origin import origin
from hotloop.observe.run.out_of_memory import Failure, as_it_ended, caught
from hotloop.report.content.ran_out import ran_out_told
from hotloop.report.terminal.screen import Screen

_TOLD = "hotloop-told-"
"""The mark of a run of which a process has told."""


def main(run: int, words: Sequence[str], folder: str) -> None:
    """Say what held the memory, and store it as a session where that can be done.

    Args:
        run: number of the process that the run began with.
        words: what the user typed.
        folder: of what is known.
    """
    screen = Screen()
    failure = _failure(Path(folder))
    told = caught(failure)
    if told is not None:
        screen.alert(f"hotloop: {_who()}{told}")
        return
    found = as_it_ended(failure)
    if not _is_first(run):  # ranks often run out together: one of them says it at length
        screen.alert(f"hotloop: {_who()}{ran_out_told(found)}")
        return
    observation = msgspec.structs.replace(_observed(words, failure), out_of_memory=found)
    show_out_of_memory(screen, observation)
    session = stored_or_told(screen, observation, origin("run", words))
    if session is not None:
        screen.note("hotloop: the same again: hotloop report")
    screen.note(f"hotloop: what each line of the program holds: hotloop observe {shlex.join(words)}")


def _who() -> str:
    rank = os.environ.get("LOCAL_RANK")
    return f"rank {rank}: " if rank is not None else ""


def _is_first(run: int, place: Path | None = None) -> bool:
    """Whether no other process of the run has told before; marks of runs that are over are taken away.

    Args:
        run: number of the process that the run began with.
        place: of the marks; None: the folder for temporary files.
    """
    place = place or Path(tempfile.gettempdir())
    for path in place.glob(f"{_TOLD}*"):
        number = path.name.removeprefix(_TOLD)
        if number.isdigit() and not psutil.pid_exists(int(number)):
            with contextlib.suppress(OSError):
                path.unlink()
    try:
        (place / f"{_TOLD}{run}").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # no room for a mark: said twice is better than not at all
        return True
    return True


def _failure(folder: Path) -> Failure:
    lived_s = 0.0
    with contextlib.suppress(psutil.Error):
        lived_s = time.time() - psutil.Process(os.getppid()).create_time()
    # The exit code is not known yet; whether the program ends with it, its process has told.
    return Failure(folder=folder, code=0, lived_s=lived_s, largest_bytes=None, num_kills=None, lead=None)


def _observed(words: Sequence[str], failure: Failure) -> Observation:
    now_s = time.monotonic()
    return build(
        words,
        failure.folder,
        {},
        script=script_of(resolve(words)),
        machine=msgspec.to_builtins(identity()),
        begin_s=now_s - failure.lived_s,
        end_s=now_s,
        exit_code=1,  # with which Python ends after an exception that nothing caught
    )
