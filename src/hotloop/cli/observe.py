"""`hotloop observe`: where the time goes."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import click

from hotloop.cli.attach import SECONDS as ATTACHED_S
from hotloop.cli.attach import observe_process
from hotloop.cli.exit_message import how_it_ended
from hotloop.cli.files import write_json
from hotloop.cli.options import (
    COMMAND_SETTINGS,
    NewScreen,
    ResultFile,
    TimeSpan,
    isolation_options,
    optional_command_argument,
    output_options,
)
from hotloop.cli.preflight import before_run, say_whose_output
from hotloop.cli.report import keep_page
from hotloop.cli.sample_files import SampleFiles
from hotloop.cli.stored import stored_or_told, stored_without_step, warn_unless_storable
from hotloop.cli.time_budget import HELP, STEPS_HELP, time_budget
from hotloop.launch.isolation.decide import Exceptions
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.model.errors import ExitCode
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.observe.profile.windows import ALL
from hotloop.observe.run.observe_command import Interrupted, LiveRun, observe
from hotloop.observe.run.origin import origin
from hotloop.report.terminal.observation import render, render_next
from hotloop.report.terminal.screen import Screen
from hotloop.store.session import FOLDER, session_folder

_OUT = ResultFile()


@click.command(
    "observe",
    context_settings=COMMAND_SETTINGS,
    epilog="Example: hotloop observe --steps 200 python train.py",
)
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help=STEPS_HELP)
@click.option("--seconds", type=TimeSpan(), help=HELP)
@click.option(
    "--pid",
    type=click.IntRange(min=1),
    metavar="PID",
    help=f"Look at a process that runs already, instead of COMMAND, for --seconds (default {ATTACHED_S:g}s).",
)
@click.option("--live", is_flag=True, help="Show phases, rates and the machine while the program runs.")
@click.option("--full", is_flag=True, help="Let the program run to completion, and keep what it writes.")
@click.option("--json", "json_file", type=ResultFile(), help="Write the Observation.")
@click.option("--no-deep", is_flag=True, help="Skip detailed profiling: call sites, host samples, operators.")
@click.option("--speedscope", type=_OUT, help="Write the host samples for speedscope.")
@click.option("--cprofile", type=_OUT, help="Write the host samples as a cProfile file.")
@click.option(
    "--memory-snapshot",
    "snapshot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the memory of a few steps for pytorch.org/memory_viz.",
)
@click.option("--verbose", is_flag=True, help="Show every progress line and every table.")
@isolation_options
@output_options
@optional_command_argument
def command(
    steps: int | None,
    seconds: float | None,
    pid: int | None,
    live: bool,
    full: bool,
    json_file: Path | None,
    no_deep: bool,
    speedscope: Path | None,
    cprofile: Path | None,
    snapshot: Path | None,
    verbose: bool,
    exceptions: Exceptions,
    new_screen: NewScreen,
    command: tuple[str, ...],
) -> int:
    """Say where the time of a PyTorch program goes.

    Runs COMMAND, unmodified, with the probe inside every Python process of it that trains, measures its steps after
    warm-up, and ends it at a step boundary. What the program writes goes to a scratch folder.

    With --pid, looks at a process that runs already and goes on: no times of steps, and what its Python frames tell.
    """
    rule, deadline = time_budget(steps, seconds, full=full)
    samples = SampleFiles(speedscope=speedscope, cprofile=cprofile, memory_snapshot=snapshot)
    samples.check(looks=not (no_deep or full))
    screen = new_screen(verbose=verbose, shared=pid is None)
    if pid is not None:
        _check_pid_alone(command, steps, full=full, no_deep=no_deep, live=live)
        return observe_process(screen, pid, seconds, samples, json_file, verbose=verbose)
    if not command:
        raise click.UsageError("COMMAND is missing: the program to run, or --pid of one that runs")
    kept = Path(FOLDER) / datetime.now().strftime("%Y%m%d-%H%M%S") / "files" if full else None
    if full:
        session_folder(Path.cwd())  # before an hour of it: nothing is written through a link
    of = origin("observe", command, before_run(screen, command))
    warn_unless_storable(screen)
    say_whose_output(screen, command)
    try:
        with ended_like_ctrl_c(), stored_without_step(of, screen):
            observation = observe(
                LiveRun(
                    words=command,
                    rule=rule,
                    deadline=deadline,
                    snapshot=samples.part,
                    keep=kept,
                    deep=() if no_deep else ALL,
                    exceptions=exceptions,
                    warn=screen.alert,
                    note=lambda text: screen.note(f"hotloop: {text}"),
                    details=screen.detail if live else None,
                ),
                screen.progress,
            )
    except Interrupted as stop:
        if stop.observation is not None:
            _show(screen, stop.observation, json_file, of, exceptions, kept=full, verbose=verbose)
        screen.done()
        screen.note("hotloop: interrupted")
        return ExitCode.INTERRUPTED
    finally:
        screen.done()
        _say_kept(screen, kept)
    _show(screen, observation, json_file, of, exceptions, kept=full, verbose=verbose)
    samples.write(observation)
    if observation.exit_code not in (None, 0):
        return ExitCode.PROGRAM_FAILED
    return ExitCode.DONE


def _check_pid_alone(
    command: tuple[str, ...], steps: int | None, *, full: bool, no_deep: bool, live: bool
) -> None:
    if command:
        raise click.UsageError("--pid looks at a process that runs already: leave out COMMAND, or --pid")
    if steps is not None or full or no_deep or live:
        raise click.UsageError(
            "--pid sees no steps: of --steps, --seconds, --full, --no-deep and --live it takes --seconds"
        )


def _show(
    screen: Screen,
    observation: Observation,
    json_file: Path | None,
    of: Origin,
    exceptions: Exceptions,
    *,
    kept: bool,
    verbose: bool,
) -> None:
    """Keep first and show then: a result is not lost over a terminal that is gone or full, nor over a full disk."""
    session = stored_or_told(screen, observation, of)
    try:
        if json_file is not None:
            write_json(json_file, observation.without_series())
    finally:
        screen.done()
        screen.note(how_it_ended(observation, kept=kept))
        screen.show(render(observation, verbose=verbose))
        screen.show(render_next(observation, stored=session is not None, options=exceptions.options()))
    if session is not None:
        keep_page(screen, session)


def _say_kept(screen: Screen, kept: Path | None) -> None:
    if kept is not None and kept.is_dir():
        session_folder(Path.cwd())  # with its .gitignore
        screen.note(f"hotloop: what the program wrote is in {kept}{os.sep}")
