"""`hotloop diagnose`: why, and what each thing costs."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec

from hotloop import __version__
from hotloop.cli.diagnose_limits import interrupted_limits, with_limits, without_limits
from hotloop.cli.exit_message import how_it_ended
from hotloop.cli.files import json_text, write_json
from hotloop.cli.options import (
    COMMAND_SETTINGS,
    NewScreen,
    ResultFile,
    TimeSpan,
    isolation_options,
    output_options,
)
from hotloop.cli.preflight import before_run, say_whose_output
from hotloop.cli.report import keep_page
from hotloop.cli.stored import stored_or_told, stored_without_step, warn_unless_storable
from hotloop.cli.time_budget import HELP, STEPS_HELP, time_budget
from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.source import with_source
from hotloop.diagnose.manual import pages
from hotloop.launch.deadline import Deadline
from hotloop.launch.isolation.decide import Exceptions
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.machine.card.cache import card_of
from hotloop.model.diagnosis import Diagnosis
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.observe.profile.efficiency import with_quiet_peak
from hotloop.observe.profile.windows import ALL
from hotloop.observe.run.observe_command import Interrupted, LiveRun, observe
from hotloop.observe.run.origin import origin
from hotloop.report.formats.github import render_github
from hotloop.report.formats.sarif import render_sarif
from hotloop.report.terminal.findings import render, render_next
from hotloop.report.terminal.screen import Screen
from hotloop.stats.quietness import is_too_busy
from hotloop.store.keys import OBSERVATION
from hotloop.store.nearest import folder_of_sessions
from hotloop.store.session import find_session, sessions
from hotloop.whatif.orders import least_s


@click.command(
    "diagnose", context_settings=COMMAND_SETTINGS, epilog="Example: hotloop diagnose python train.py"
)
@click.option("--session", "name", metavar="ID", help="Read this session; without a command, the newest.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help=STEPS_HELP)
@click.option("--seconds", type=TimeSpan(), help=HELP)
@click.option("--full", is_flag=True, help="Let the program run to completion.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "sarif", "github"]), default="text")
@click.option(
    "--json",
    "json_file",
    type=ResultFile(),
    help="Write the findings as JSON, too.",
)
@click.option(
    "--latency-limit",
    type=TimeSpan(),
    help="Inference: 95th-percentile latency limit per batch, such as 50ms.",
)
@click.option("--no-ceilings", is_flag=True, help="Skip the second run, which measures the ceilings.")
@click.option(
    "--check",
    is_flag=True,
    help="Exit with 1 if there is a warning, with 5 if the machine was too busy or no step was seen.",
)
@click.option("--no-deep", is_flag=True, help="Skip detailed profiling: call sites, host samples, operators.")
@click.option("--verbose", is_flag=True, help="List all findings, and the rules that lack data.")
@isolation_options
@output_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND...]")
def command(
    *,
    name: str | None,
    steps: int | None,
    seconds: float | None,
    full: bool,
    format_: str,
    json_file: Path | None,
    latency_limit: float | None,
    no_ceilings: bool,
    check: bool,
    no_deep: bool,
    verbose: bool,
    exceptions: Exceptions,
    new_screen: NewScreen,
    command: tuple[str, ...],
) -> int:
    """Say what holds a PyTorch program back, and what each thing costs.

    Runs COMMAND as `observe` does, then once more with its data cached, its loader alone, and what may help switched on
    and off (--no-ceilings leaves that out), within the time budget; or reads a session.
    """
    rule, deadline = time_budget(steps, seconds, full=full)
    _check_words(command, name, measures=steps is not None or seconds is not None or full)
    screen = new_screen(shared=bool(command))
    interrupted = False
    try:
        if command:
            live = LiveRun(
                words=command,
                rule=rule,
                deadline=deadline,
                later=None if no_ceilings else least_s,
                deep=() if no_deep else ALL,
                exceptions=exceptions,
                warn=screen.alert,
                note=lambda text: screen.note(f"hotloop: {text}"),
            )
            found, interrupted = _observed(screen, live, deadline, latency_limit, ceilings=not no_ceilings)
        else:
            found = _kept(name, latency_limit)
        found = with_source(found, Path.cwd() if command else folder_of_sessions(Path.cwd()))
    finally:
        screen.done()
    if not command:
        of = shlex.join(found.observation.command)
        screen.note(f"hotloop: session {found.session}, of {of}")
    found = msgspec.structs.replace(found, observation=found.observation.without_series())
    if json_file is not None:
        write_json(json_file, found)
    inference = found.observation.inference
    if latency_limit is not None and (inference is None or not inference.by_batch):
        screen.note("hotloop: --latency-limit says nothing here: batches of other sizes were not tried")
    _show(screen, found, format_, exceptions, verbose=verbose)
    if command and found.session is not None:
        keep_page(screen, found.session)
    if interrupted:
        screen.note("hotloop: interrupted")
        return ExitCode.INTERRUPTED
    return _exit_code(found, check=check)


def _check_words(command: tuple[str, ...], name: str | None, *, measures: bool) -> None:
    if measures and not command:
        raise click.UsageError(
            "--steps, --seconds and --full say how long to measure, and no command is given"
        )
    if command and name:
        raise click.UsageError(
            "--session reads what was observed before: leave out the command, or --session"
        )


def _observed(
    screen: Screen, live: LiveRun, deadline: Deadline, latency_limit_s: float | None, *, ceilings: bool
) -> tuple[Diagnosis, bool]:
    """Measure and store; return what was found, and whether the user ended it: then it is of what was seen by then.

    Raises:
        KeyboardInterrupt: the user ended it before a step was seen.
    """
    of = origin("diagnose", live.words, before_run(screen, live.words))
    warn_unless_storable(screen)
    say_whose_output(screen, live.words)
    try:
        with ended_like_ctrl_c(), stored_without_step(of, screen):
            observation, interrupted = _measured(screen, live, deadline, ceilings=ceilings), False
    except Interrupted as stop:
        if stop.observation is None:
            raise KeyboardInterrupt from None
        observation, interrupted = stop.observation, True
    observation = _waited_for(observation, latency_limit_s)
    return diagnose(observation, stored_or_told(screen, observation, of)), interrupted


def _measured(screen: Screen, live: LiveRun, deadline: Deadline, *, ceilings: bool) -> Observation:
    """Observe the program, say how it ended, and add its limits.

    Raises:
        Interrupted: Ctrl-C, with what was measured.
    """
    try:
        observation = observe(live, screen.progress)
    except Interrupted as stop:
        if stop.observation is not None:
            screen.done()
            screen.note(how_it_ended(stop.observation))
            raise Interrupted(interrupted_limits(stop.observation)) from None
        raise
    screen.done()
    screen.note(how_it_ended(observation))
    return (
        with_limits(observation, live, deadline, screen.progress) if ceilings else without_limits(observation)
    )


def _waited_for(observation: Observation, limit_s: float | None) -> Observation:
    """Return the observation with what a batch may take."""
    found = observation.inference
    if found is None or limit_s is None:
        return observation
    inference = msgspec.structs.replace(found, latency_limit_s=limit_s)
    return msgspec.structs.replace(observation, inference=inference)


def _kept(name: str | None, latency_limit_s: float | None) -> Diagnosis:
    """The newest session that holds an observation, or the one named."""
    base = folder_of_sessions(Path.cwd())
    names = [path.stem for path in sessions(base)] if name is None else [name]
    for one in names or [""]:
        session = find_session(base, one or None)
        try:
            observation = session.get(OBSERVATION, Observation)
            if observation is not None:
                known = with_quiet_peak(observation, card_of(observation))
                return diagnose(_waited_for(known, latency_limit_s), session.name)
        finally:
            session.close()
    raise HotloopError(
        f"the session {name!r} holds no observation" if name else "no session here holds an observation",
        "give the command to observe: hotloop diagnose python train.py",
    )


def _show(
    screen: Screen, diagnosis: Diagnosis, format_: str, exceptions: Exceptions, *, verbose: bool
) -> None:
    if format_ == "text":
        screen.show(render(diagnosis, verbose=verbose))
        screen.show(render_next(diagnosis, exceptions.options()))
    elif format_ == "json":
        click.echo(json_text(diagnosis), nl=False)
    elif format_ == "github":
        click.echo(render_github(diagnosis.findings), nl=False)
    else:
        found = {finding.code: pages.page(finding.code) or finding.title for finding in diagnosis.findings}
        click.echo(render_sarif(diagnosis.findings, __version__, found), nl=False)


def _exit_code(diagnosis: Diagnosis, *, check: bool) -> int:
    code = diagnosis.observation.exit_code
    if code not in (None, 0):
        return ExitCode.PROGRAM_FAILED
    if not check:
        return ExitCode.DONE
    if diagnosis.observation.step is None or is_too_busy(diagnosis.observation.foreign_share):
        return ExitCode.UNDECIDED
    loud = any(finding.severity is not Severity.INFO for finding in diagnosis.findings)
    return ExitCode.GATE if loud else ExitCode.DONE
