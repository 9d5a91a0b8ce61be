"""A program to compare: its command, where it runs, and what was observed of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from hotloop.launch.command import resolve
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.observe.run.observe_command import Interrupted, LiveRun, observe
from hotloop.observe.run.stopping import StopRule
from hotloop.tune.executor import PlanSteps

LOG_LINES = 12
"""Of the end of the program's output, in an error."""
OBSERVED_S = 3.0
"""Of each program before the duet: rhythm, step time and start-up are all that is wanted of it."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program, ready to be run in a duet."""

    name: str
    words: tuple[str, ...]
    argv: tuple[str, ...]
    folder: Path
    observation: Observation
    environment: dict[str, str] = {}
    """Variables that it is started with, beside the user's."""
    plan: PlanSteps = ()
    """Changes that are on in it, by hooks."""


def program(
    name: str,
    words: tuple[str, ...],
    folder: Path,
    rule: StopRule,
    progress: Callable[[str], None],
    warn: Callable[[str], None] | None = None,
) -> Program:
    """Observe a command in a folder.

    Args:
        name: of it, for people.
        words: of the command.
        folder: where it runs.
        rule: how long it is observed.
        progress: told of what goes on.
        warn: told what of the user's files it could change.

    Raises:
        HotloopError: it cannot be run, or took no step.
    """
    end = ""
    scratch = new_scratch("compare-log")
    log = scratch / "log"
    try:
        with inside(folder):
            argv = tuple(resolve(words))
            seen = observe(
                LiveRun(words=words, rule=rule, log=log, warn=warn), lambda text: progress(f"{name}: {text}")
            )
    except Interrupted:
        raise KeyboardInterrupt from None
    except HotloopError as error:
        raise HotloopError(f"{name}: {error.message}\n{_end(log)}".strip(), error.hint, error.code) from error
    else:
        end = _end(log)
    finally:
        remove(scratch)
    if seen.exit_code not in (None, 0):
        raise HotloopError(
            f"{name} failed with exit code {seen.exit_code}, so its times say nothing\n{end}".strip(),
            "run it by itself first",
            ExitCode.PROGRAM_FAILED,
        )
    if seen.step is None or seen.anchor is None:
        raise HotloopError(f"{name} took no step", "run it by itself first", ExitCode.PROGRAM_FAILED)
    return Program(name=name, words=words, argv=argv, folder=folder, observation=seen)


def _end(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:]) if log.exists() else ""


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Be in another folder for a while: commands are started from where hotloop is."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
