"""What `hotloop run` says of a program that ran out of memory.

`hotloop run` becomes the program, so nobody waits for its end: at that end the program's own process starts this one.
What the kernel kills tells nothing.
"""

from __future__ import annotations

import contextlib
import os
import shlex
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
from hotloop.observe.run.out_of_memory import Failure, as_it_ended
from hotloop.report.content.ran_out import ran_out_told
from hotloop.report.terminal.screen import Screen


def main(words: Sequence[str], folder: str) -> None:
    """Say what held the memory, and store it as a session where that can be done."""
    screen, rank = Screen(), os.environ.get("LOCAL_RANK", "0")
    failure = _failure(Path(folder))
    found = as_it_ended(failure)
    if rank != "0":  # ranks run out together: one of them says it at length
        screen.alert(f"hotloop: rank {rank}: {ran_out_told(found)}")
        return
    observation = msgspec.structs.replace(_observed(words, failure), out_of_memory=found)
    show_out_of_memory(screen, observation)
    session = stored_or_told(screen, observation, origin("run", words))
    if session is not None:
        screen.note("hotloop: the same again: hotloop report")
    screen.note(f"hotloop: what each line of the program holds: hotloop observe {shlex.join(words)}")


def _failure(folder: Path) -> Failure:
    lived_s = 0.0
    with contextlib.suppress(psutil.Error):
        lived_s = time.time() - psutil.Process(os.getppid()).create_time()
    # An exception that nothing caught ends Python with 1.
    return Failure(folder=folder, code=1, lived_s=lived_s, largest_bytes=None, num_kills=None, lead=None)


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
        exit_code=failure.code,
    )
