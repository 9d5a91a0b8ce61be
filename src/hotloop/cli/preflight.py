"""What is looked at and said before the user's program is started."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from hotloop.launch.command import resolve, script_of
from hotloop.machine.environment.check import check_environment
from hotloop.machine.environment.snapshot import MachineSnapshot, look
from hotloop.model.machine import EnvironmentCheck
from hotloop.report.terminal.layout import WIDTH
from hotloop.report.terminal.screen import Screen
from hotloop.stats.quietness import is_busy

LOOK_S = 0.6
"""60 ticks of the kernel's clock a core: one tick is below 2% of one."""


def before_run(screen: Screen, words: Sequence[str]) -> tuple[EnvironmentCheck, ...]:
    """Say what would make the run worthless, before time is spent on it; return all that was looked at.

    Raises:
        HotloopError: the command cannot be run.
    """
    if words:
        resolve(words)  # what is wrong with the command comes first
    _hint_options(screen, words)
    seen = look(Path.cwd(), seconds=LOOK_S)
    _warn_if_busy(screen, seen)
    return check_environment(seen)


def _hint_options(screen: Screen, words: Sequence[str]) -> None:
    """Say that an option of ours stands behind the command, where it is the program's, unless its script knows it."""
    command = click.get_current_context().command
    ours = {option: param for param in command.params for option in param.opts if option.startswith("--")}
    script = script_of(words) if words else None
    known = script.read_text(errors="replace") if script is not None and script.is_file() else ""
    for word, following in itertools.zip_longest(words[1:], words[2:]):
        name, _, value = word.partition("=")
        if name in ours and name not in known and name.removeprefix("--").replace("-", "_") not in known:
            param = ours[name]
            takes_value = not (isinstance(param, click.Option) and param.is_flag)
            typed = [name, *([value or following or "..."] if takes_value else [])]
            screen.warn(
                f"hotloop: {name} stands behind your command, so your program gets it. "
                f"Options of hotloop go first: hotloop {command.name} {shlex.join(typed)} {words[0]} ..."
            )


def _warn_if_busy(screen: Screen, seen: MachineSnapshot) -> None:
    """Say that others use the machine."""
    share = seen.foreign_ratio
    if share is None or not is_busy(share):
        return
    who = ", ".join(f"{name} (pid {pid})" for name, pid, _ in seen.busiest)
    screen.warn(
        f"hotloop: other processes use {share:.0%} of the CPU now{f': {who}' if who else ''}. "
        "Times will be too long, and differences hard to prove; stop them first if you can."
    )


def say_whose_output(screen: Screen, words: Sequence[str]) -> None:
    """Put the program's own output under a heading."""
    line = shlex.join(words)
    room = WIDTH - len("output of ") - 6
    screen.their_output(f"output of {line if len(line) <= room else f'{line[: room - 1]}…'}")
