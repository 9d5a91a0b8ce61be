"""`hotloop check`: a gate for CI that fails on a proven slowdown, never on noise."""

from __future__ import annotations

import os
import shlex
from datetime import datetime, timezone
from pathlib import Path

import click
import msgspec
import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.cli.before import before_run
from hotloop.cli.files import check_writable, write_json, write_text
from hotloop.cli.options import COMMAND_SETTINGS, ResultFile, TimeSpan, command_argument, output_options
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.machine.environment.code_state import code_state
from hotloop.machine.host.identity import fingerprint, identity
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import shown
from hotloop.model.gate import ClassBaseline, GateBaseline, GateRun, GateVerdict
from hotloop.model.observation import Observation
from hotloop.model.quantities import counted, duration, percent
from hotloop.model.secrets import redacted_words
from hotloop.model.step_series import StepKind
from hotloop.observe.run.stopping import StopRule
from hotloop.report.content.busy_machine import busy_machine
from hotloop.report.gate import annotation, gate_markdown, junit
from hotloop.report.terminal.layout import next_steps
from hotloop.report.terminal.screen import Screen
from hotloop.stats.gate import is_proven_slower, is_settled, slowdown, typical_s
from hotloop.tune.compare.program import program

_OUT = ResultFile()
_FILE = click.Path(dir_okay=False, path_type=Path)
DEFAULT_S = 10.0
NOISY = 0.1
"""Share of the machine taken by others above which a slowdown may be theirs, as for blocks of trials."""


_EXAMPLE = """\b
Example: measure the baseline once, commit it, then check against it:
    hotloop check --baseline baseline.json --update python train.py
    hotloop check --baseline baseline.json python train.py
"""


@click.command("check", context_settings=COMMAND_SETTINGS, epilog=_EXAMPLE)
@click.option("--baseline", "file", type=_FILE, required=True, metavar="FILE", help="Baseline file.")
@click.option("--update", is_flag=True, help="Measure and write the baseline of this class of machines.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Allowed slowdown, in percent.",
)
@click.option(
    "--runs", "num", type=click.IntRange(min=1), default=3, show_default=True, help="Fresh runs to measure."
)
@click.option(
    "--seconds",
    type=TimeSpan(),
    default=f"{DEFAULT_S:.0f}s",
    show_default=True,
    help="Steps to measure per run.",
)
@click.option("--junit", "junit_file", type=_OUT, help="Write the verdict as JUnit XML.")
@click.option("--markdown", "markdown_file", type=_OUT, help="Write a summary.")
@click.option("--json", "json_file", type=_OUT, help="Write the figures.")
@click.option("--github", is_flag=True, help="Print an annotation; a summary goes to $GITHUB_STEP_SUMMARY.")
@output_options
@command_argument
def command(
    *,
    file: Path,
    update: bool,
    margin: float,
    num: int,
    seconds: float,
    junit_file: Path | None,
    markdown_file: Path | None,
    json_file: Path | None,
    github: bool,
    quiet: bool,
    no_color: bool,
    command: tuple[str, ...],
) -> int:
    """Fail where COMMAND got slower than its baseline by more than a margin, and only where that is proven.

    The baseline is a file of raw samples to be committed; it holds one set of runs for each class of machines. Make it
    with --update on the machine that checks.
    """
    for target in (file, junit_file, markdown_file, json_file):
        if target is not None:
            check_writable(target)
    screen = Screen(quiet=quiet, no_color=no_color)
    known = _read(file)
    machine = fingerprint(identity())
    then = known.classes.get(machine) if known else None
    if then is None and not update:
        again = shlex.join(
            ["hotloop", "check", "--baseline", str(file), "--update", *redacted_words(command)]
        )
        raise HotloopError(
            f"{file} has no baseline of this class of machines ({machine})"
            if known
            else f"there is no baseline {str(file)!r}",
            f"make one here, on the code to be held to: {again}",
        )
    other = _other_command(known, command) if known and not update else ""
    if other:
        screen.warn(f"hotloop: {other}: {shlex.join(redacted_words(command))} is held to it all the same")
    before_run(screen, command)
    try:
        with ended_like_ctrl_c():
            runs = tuple(_run(command, number, num, seconds, screen) for number in range(num))
    finally:
        screen.done()
    if update or then is None:
        write_json(file, _with_class(known, command, machine, runs))
        screen.note(f"hotloop: {file} holds {counted(num, 'run')} of this class of machines ({machine})")
        held = ["hotloop", "check", "--baseline", str(file), *command]
        screen.show(next_steps([("hold the program to that", held)]))
        return ExitCode.DONE
    verdict = _judged(command, then, runs, margin / 100, other)
    _tell(verdict, junit_file, markdown_file, json_file, github=github)
    screen.show(told(verdict))
    screen.show(_next(verdict, file, num, seconds, redacted_words(command)))
    return ExitCode.DONE if verdict.passed else ExitCode.GATE


def _read(file: Path) -> GateBaseline | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=GateBaseline)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise HotloopError(
            f"{file} cannot be read as a baseline: {error}", "make it anew with --update, under another name"
        ) from error


def _other_command(known: GateBaseline, words: tuple[str, ...]) -> str:
    """Return what the baseline was measured of, where that is another command; empty: it is this one."""
    if known.command == redacted_words(words):
        return ""
    return f"the baseline was measured of another command, {shlex.join(known.command)}"


def _run(words: tuple[str, ...], number: int, num: int, seconds: float, screen: Screen) -> GateRun:
    name = f"run {number + 1} of {num}"
    seen = program(
        name, words, Path.cwd(), StopRule(seconds=seconds), screen.progress, screen.alert
    ).observation
    return GateRun(steps_s=_steps(seen), foreign_share=seen.foreign_share)


def _steps(seen: Observation) -> tuple[float, ...]:
    series = seen.series[0]
    kinds = np.frombuffer(series.kind, dtype=np.uint8)
    steady = np.frombuffer(series.duration_s, dtype="<f4")[kinds == StepKind.STEADY]
    return tuple(float(f"{one:.6g}") for one in steady)


def _with_class(
    known: GateBaseline | None, words: tuple[str, ...], machine: str, runs: tuple[GateRun, ...]
) -> GateBaseline:
    code = code_state(Path.cwd())
    mine = ClassBaseline(
        machine=msgspec.to_builtins(identity()),
        measured_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        commit=code.commit if code else None,
        runs=runs,
    )
    others = known.classes if known else {}
    return GateBaseline(command=redacted_words(words), classes={**others, machine: mine})


def _judged(
    words: tuple[str, ...], then: ClassBaseline, runs: tuple[GateRun, ...], margin: float, other: str
) -> GateVerdict:
    before, now = ([run.steps_s for run in each if run.steps_s] for each in (then.runs, runs))
    if not before or not now:
        raise HotloopError(
            "no steady step was measured", "give each run more time: --seconds", ExitCode.PROGRAM_FAILED
        )
    found = slowdown(before, now)
    slower = is_proven_slower(found, margin)
    busiest = max((run.foreign_share for run in runs if run.foreign_share is not None), default=None)
    noisy = slower and (busiest or 0.0) > NOISY
    differs = found.low > 1 or found.high < 1
    says = ("slower" if found.ratio > 1 else "faster") if differs else "no difference is proven"
    proof = "" if is_settled(found, margin) else "; that is not proven to be beyond the margin, nor within it"
    if noisy and busiest is not None:
        proof = f"; other processes used up to {percent(busiest)} of the CPU, so it is not held against the program"
    if other:
        proof = f"{proof}; {other}"
    sentence = (
        f"a step took {duration(typical_s(before))} and takes {duration(typical_s(now))}: {found.ratio:.2f} times as "
        f"long [{found.low:.2f}, {found.high:.2f}] ({says}; margin {percent(margin)}){proof}"
    )
    return GateVerdict(
        passed=not slower or noisy,
        proven=is_settled(found, margin) and not noisy,
        slowdown=found,
        margin=margin,
        before_s=typical_s(before),
        now_s=typical_s(now),
        num_runs=(len(before), len(now)),
        sentence=sentence,
        command=redacted_words(words),
        baseline_commit=then.commit,
        foreign_share=busiest,
        noisy=noisy,
    )


def _tell(
    verdict: GateVerdict,
    junit_file: Path | None,
    markdown_file: Path | None,
    json_file: Path | None,
    *,
    github: bool,
) -> None:
    if junit_file is not None:
        write_text(junit_file, junit(verdict))
    if markdown_file is not None:
        write_text(markdown_file, gate_markdown(verdict))
    if json_file is not None:
        write_json(json_file, verdict)
    if github:
        click.echo(annotation(verdict), nl=False)
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            with Path(summary).open("a", encoding="utf-8") as target:
                target.write(gate_markdown(verdict))


def _next(
    verdict: GateVerdict, file: Path, num: int, seconds: float, command: tuple[str, ...]
) -> RenderableType:
    again = ["hotloop", "check", "--baseline", str(file)]
    if seconds != DEFAULT_S:
        again += ["--seconds", f"{seconds:g}s"]
    if verdict.passed and not verdict.proven:
        return next_steps([("more runs for a proof", [*again, "--runs", str(2 * num), *command])])
    if verdict.passed:
        return next_steps([("what could make it faster", ["hotloop", "diagnose", *command])])
    return next_steps(
        [
            ("why it takes so long now", ["hotloop", "diagnose", *command]),
            (
                "if it is meant to: hold it to this from now on",
                [*again, "--update", *command],
            ),
        ]
    )


def told(verdict: GateVerdict) -> RenderableType:
    """Return the verdict, ready to print; first whether the machine was quiet enough for one."""
    style = "bold red" if not verdict.passed else "bold green" if verdict.proven else "bold yellow"
    said = Text.assemble((f"hotloop check {verdict.word}: ", style), shown(verdict.sentence))
    warned = (Text(f"{one}\n", style="bold yellow") for one in busy_machine(verdict.foreign_share))
    return Group(*warned, said)
