"""`hotloop check`: a gate for CI that fails on a proven slowdown, never on noise."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.cli.files import check_writable, write_json, write_text
from hotloop.cli.options import (
    COMMAND_SETTINGS,
    NewScreen,
    Number,
    ResultFile,
    TimeSpan,
    command_argument,
    output_options,
)
from hotloop.cli.programs import programs
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.machine.environment.code_state import code_state
from hotloop.machine.host.identity import fingerprint, identity
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import shown
from hotloop.model.gate import SCHEMA, ClassBaseline, GateBaseline, GateRun, GateVerdict
from hotloop.model.outcome import Outcome
from hotloop.model.quantities import counted, percent
from hotloop.model.secrets import redacted_words
from hotloop.observe.run.stopping import StopRule
from hotloop.report.content.busy_machine import busy_machine
from hotloop.report.gate import annotation, gate_markdown, junit
from hotloop.report.terminal.layout import next_steps
from hotloop.report.terminal.screen import Screen
from hotloop.stats.quietness import is_busy
from hotloop.tune.compare.gate import busiest_share, judged

_OUT = ResultFile()
_FILE = click.Path(dir_okay=False, path_type=Path)
DEFAULT_MARGIN = 5.0
DEFAULT_RUNS = 3
DEFAULT_S = 10.0
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
    type=Number(min=0),
    default=DEFAULT_MARGIN,
    show_default=True,
    metavar="PCT",
    help="Allowed slowdown, in percent.",
)
@click.option(
    "--runs",
    "num",
    type=click.IntRange(min=1),
    default=DEFAULT_RUNS,
    show_default=True,
    metavar="N",
    help="Fresh runs to measure.",
)
@click.option(
    "--seconds",
    type=TimeSpan(),
    default=f"{DEFAULT_S:.0f}s",
    show_default=True,
    help="Time to measure the steps of each run.",
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
    new_screen: NewScreen,
    command: tuple[str, ...],
) -> int:
    """Fail where COMMAND got slower than its baseline by more than a margin, and only where that is proven.

    Exit codes: 0 it did not, or that is not proven; 1 it did; 5 other processes were so busy that they can have made
    the difference, or hidden one, or fewer than five steps were measured. Other processes cannot have cost more than
    the time in which the program's threads had no core.

    The baseline is a file of raw samples to be committed; it holds one set of runs for each class of machines. Make it
    with --update on the machine that checks.
    """
    check_writable(file)
    screen = new_screen()
    gate = Gate(file, margin, num, seconds)
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
    programs().look(screen, command)
    try:
        with ended_like_ctrl_c():
            runs = tuple(_run(command, number, num, seconds, screen) for number in range(num))
    finally:
        screen.done()
    if update or then is None:
        _warn_of_busy(runs, screen)
        write_json(file, _with_class(known, command, machine, runs))
        screen.note(f"hotloop: {file} holds {counted(num, 'run')} of this class of machines ({machine})")
        screen.show(next_steps([("hold the program to that", [*gate.again(), *redacted_words(command)])]))
        return ExitCode.DONE
    verdict = judged(redacted_words(command), then, runs, margin / 100, other)
    _tell(verdict, junit_file, markdown_file, json_file, github=github)
    screen.show(told(verdict))
    screen.show(_next(verdict, gate, redacted_words(command)))
    return verdict.outcome.exit_code


def _read(file: Path) -> GateBaseline | None:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=GateBaseline)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise HotloopError(
            f"{file} cannot be read as a baseline: {error}", "make it anew with --update, under another name"
        ) from error
    if found.schema > SCHEMA:
        raise HotloopError(
            f"{file} is a baseline of a later hotloop (schema {found.schema}, here {SCHEMA})",
            "use that version, or make it anew with --update, under another name",
        )
    return found


def _other_command(known: GateBaseline, words: tuple[str, ...]) -> str:
    """Return what the baseline was measured of, where that is another command; empty: it is this one."""
    if known.command == redacted_words(words):
        return ""
    return f"the baseline was measured of another command, {shlex.join(known.command)}"


def _run(words: tuple[str, ...], number: int, num: int, seconds: float, screen: Screen) -> GateRun:
    name, rule = f"run {number + 1} of {num}", StopRule(seconds=seconds)
    return programs().gate_run(name, words, Path.cwd(), rule, screen.progress, screen.alert)


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
    others = known.classes if known and known.command == redacted_words(words) else {}
    return GateBaseline(command=redacted_words(words), classes={**others, machine: mine})


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


class Gate(NamedTuple):
    """The options of a gate that a further call of it needs, too."""

    file: Path
    margin: float = DEFAULT_MARGIN
    num: int = DEFAULT_RUNS
    seconds: float = DEFAULT_S

    def again(self) -> list[str]:
        """Return how the same gate is typed; its command comes after it."""
        margin = ["--margin", f"{self.margin:g}"] if self.margin != DEFAULT_MARGIN else []
        runs = ["--runs", str(self.num)] if self.num != DEFAULT_RUNS else []
        longer = ["--seconds", f"{self.seconds:g}s"] if self.seconds != DEFAULT_S else []
        return ["hotloop", "check", "--baseline", str(self.file), *margin, *runs, *longer]


def _next(verdict: GateVerdict, gate: Gate, command: tuple[str, ...]) -> RenderableType:
    if verdict.outcome is Outcome.NOT_JUDGED:
        return next_steps(_unjudged(verdict, gate.again(), command))
    if verdict.passed and not verdict.proven:
        more = gate._replace(num=2 * gate.num).again()
        return next_steps([("more runs for a proof", [*more, *command])])
    if verdict.passed:
        return next_steps([("what could make it faster", ["hotloop", "diagnose", *command])])
    return next_steps(
        [
            ("why it takes so long now", ["hotloop", "diagnose", *command]),
            ("if it is meant to: hold it to this from now on", [*gate.again(), "--update", *command]),
        ]
    )


def _unjudged(
    verdict: GateVerdict, again: list[str], command: tuple[str, ...]
) -> list[tuple[str, list[str]]]:
    steps = [("when the machine is quiet (hotloop machine names who is busy)", [*again, *command])]
    if verdict.baseline_commit is not None:
        revision = verdict.baseline_commit[:12]
        beside = ["hotloop", "compare", "--baseline", revision, *command]
        steps.append(("or now: both revisions in turns, beside the same neighbours", beside))
    return steps


def _warn_of_busy(runs: Sequence[GateRun], screen: Screen) -> None:
    """Say that a baseline is worth little that was made beside others."""
    busiest = busiest_share(runs)
    if busiest is not None and is_busy(busiest):
        screen.warn(
            f"hotloop: other processes used up to {percent(busiest)} of the CPU, so these times are too long, and most "
            "checks against them cannot judge: make the baseline again on a quiet machine"
        )


def told(verdict: GateVerdict) -> RenderableType:
    """Return the verdict, ready to print; first whether the machine was quiet enough for one."""
    failed = verdict.outcome is Outcome.FAILED
    style = "bold red" if failed else "bold green" if verdict.passed and verdict.proven else "bold yellow"
    said = Text.assemble((f"hotloop check {verdict.word}: ", style), shown(verdict.sentence))
    busy = busy_machine(verdict.foreign_share) if verdict.outcome is Outcome.NOT_JUDGED else ()
    warned = (Text(f"{one}\n", style="bold yellow") for one in busy)
    return Group(*warned, said)
