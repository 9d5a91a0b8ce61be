"""`hotloop run`: the program for real, with the plan on."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

import hotloop
from hotloop.cli.live_options import followers, live_options
from hotloop.cli.options import COMMAND_SETTINGS, NewScreen, command_argument, output_options
from hotloop.launch.command import resolve, script_of
from hotloop.launch.environment import probed
from hotloop.machine.environment.command_packages import version_of
from hotloop.model.errors import HotloopError
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Plan
from hotloop.probe.process.config import ProbeConfig
from hotloop.report.terminal.screen import Screen
from hotloop.report.terminal.tuning import what_is_on
from hotloop.store.nearest import folder_of_sessions
from hotloop.tune.plan.compatibility import edits, misfits
from hotloop.tune.plan.in_source import in_source, rest_of
from hotloop.tune.plan.likely_plan import likely_plan
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.plan.plan_file import read_plan
from hotloop.tune.plan.plan_folder import folder_of_plan

_TELL = (
    "import sys; sys.path[:0] = sys.argv[1:3]; from hotloop.cli.run_failure import main; "
    "main(int(sys.argv[3]), sys.argv[4:-1], sys.argv[-1])"
)


@click.command(
    "run",
    context_settings=COMMAND_SETTINGS,
    epilog="Example: hotloop run --plan hotloop.toml python train.py",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Plan file (default: hotloop.toml, unless only --metrics, --otlp or --nvtx is given).",
)
@click.option(
    "--force", is_flag=True, help="Use a plan made on a different machine or for a different program."
)
@click.option(
    "--likely",
    is_flag=True,
    help="Use the likely but unproven plan of the newest session instead.",
)
@live_options
@output_options
@command_argument
def command(
    *,
    plan_file: Path | None,
    force: bool,
    likely: bool,
    metrics: tuple[str, int] | None,
    otlp: str | None,
    nvtx: bool,
    new_screen: NewScreen,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND for real with a plan switched on.

    The program keeps its output, its files and its exit code; this process becomes the program, so nothing of hotloop
    waits beside it. Where it runs out of memory, its own process says at the end what held it, and stores that as a
    session.
    """
    seen_by = followers(metrics, otlp, nvtx=nvtx)
    argv = resolve(command)
    screen = new_screen()
    steps: tuple[Candidate, ...] = ()
    infers = False
    if plan_file is not None or likely or not seen_by:
        steps, infers = planned(plan_file, argv, screen, likely=likely, force=force)
    environment = with_plan(os.environ, steps)
    sys.stdout.flush()
    os.execvpe(argv[0], argv, _with_probe(environment, steps, seen_by, command, infers=infers))


def planned(
    plan_file: Path | None, argv: Sequence[str], screen: Screen, *, likely: bool, force: bool
) -> tuple[tuple[Candidate, ...], bool]:
    """Say what is on; return what is to be switched on from outside, and whether the program trains nothing.

    Raises:
        HotloopError: there is no plan, or it was made elsewhere.
    """
    plan_file = plan_file or Path("hotloop.toml")
    if likely:
        folder = folder_of_sessions(Path.cwd())
        plan, of = likely_plan(folder), "of the session"
    else:
        plan, of = read_plan(plan_file), str(plan_file)
        folder = folder_of_plan(plan, plan_file)
    return _steps_that_fit(plan, of, folder, argv, screen, force=force), plan.fit.infers


def _steps_that_fit(
    plan: Plan, of: str, folder: Path, argv: Sequence[str], screen: Screen, *, force: bool
) -> tuple[Candidate, ...]:
    """Say what is on, and return what is to be switched on from outside.

    Raises:
        HotloopError: the plan was made elsewhere.
    """
    script, found = script_of(argv), in_source(plan, folder, argv)
    torch_version = version_of("torch", argv, Path.cwd())
    differing = misfits(plan.fit, None if found.steps else script, torch_version)
    if differing and not force:
        raise HotloopError(
            f"the plan {of} was proven elsewhere: {'; '.join(differing)}",
            "make a new one with hotloop tune, or take it all the same with --force",
        )
    for edited in () if found.steps else edits(plan.fit, script):
        screen.note(f"hotloop: {edited}; the plan is used all the same, its gain may differ")
    in_it = f"; in the source already: {', '.join(found.steps)}" if found.steps else ""
    screen.note(f"hotloop: {what_is_on(plan)}{in_it}")
    for line in found.said():
        screen.note(f"hotloop: {line}")
    return rest_of(plan, found)


def _with_probe(
    environment: dict[str, str],
    steps: tuple[Candidate, ...],
    seen_by: tuple[dict[str, Any], ...],
    command: Sequence[str],
    *,
    infers: bool,
) -> dict[str, str]:
    """The orders travel in the environment itself: no file of ours has to outlive this process."""
    config = ProbeConfig(
        folder=None,
        activations=tuple(activation_orders(steps)),
        infers=infers,
        record=False,
        lean=not seen_by,
        followers=seen_by,
        memory_reporter=_reporter(command),
    )
    return probed(environment, config.inline()) if steps or seen_by else environment


def _reporter(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command that tells of a program that ran out of memory (`cli/run_failure.py`)."""
    # Isolated: a module of the current folder or the user's environment must not take the place of a library's.
    places = [str(Path(module.__file__ or "").parents[1]) for module in (hotloop, msgspec)]
    # The program takes this process's place, and its number with it.
    return (sys.executable, "-I", "-c", _TELL, *places, str(os.getpid()), *words)
