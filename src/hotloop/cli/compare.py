"""`hotloop compare`: which of two is faster, phase by phase."""

from __future__ import annotations

import contextlib
import shlex
import time
from pathlib import Path

import click
import msgspec

from hotloop.cli.before import before_run
from hotloop.cli.changes import changes, code_between
from hotloop.cli.files import check_writable, write_json, write_text
from hotloop.cli.options import ResultFile, TimeSpan, output_options
from hotloop.cli.run import command as run
from hotloop.cli.run import planned
from hotloop.cli.stored import OBSERVATION, RESULT
from hotloop.launch.command import resolve
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.machine.environment.code_state import code_state
from hotloop.machine.environment.command_packages import packages_of
from hotloop.model.comparison import Comparison, TunedSide
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.ratio import Ratio
from hotloop.model.secrets import redacted_words
from hotloop.model.tuning import TuneResult
from hotloop.observe.run.origin import ORIGIN, origin
from hotloop.observe.run.stopping import StopRule
from hotloop.report.content.figures import label
from hotloop.report.html.page import page
from hotloop.report.markdown import markdown
from hotloop.report.sections.comparison import comparison_document
from hotloop.report.terminal.compared import render_next
from hotloop.report.terminal.report import render
from hotloop.report.terminal.screen import Screen
from hotloop.stats.verdict import MIN_MARGIN
from hotloop.store.nearest import folder_of_sessions
from hotloop.store.session import find_session, is_session_file, sessions
from hotloop.tune.compare.baseline_tree import tree_at
from hotloop.tune.compare.compare import compare_observations, compare_programs
from hotloop.tune.compare.program import OBSERVED_S, Program, program
from hotloop.tune.executor import PlanSteps

_OUT = ResultFile()


@click.command(
    "compare",
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    epilog="Example: hotloop compare 'python train.py' 'python train.py --fused'",
)
@click.option("--baseline", metavar="REV", help="Compare COMMAND with itself at this Git revision.")
@click.option(
    "--budget",
    type=TimeSpan(),
    default="5m",
    show_default=True,
    help="Time budget; two pairs of runs are the minimum.",
)
@click.option("--json", "json_file", type=_OUT, help="Write the figures.")
@click.option("--html", type=_OUT, help="Write a page.")
@click.option("--markdown", "markdown_file", type=_OUT, help="Write Markdown for a pull request.")
@output_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED, required=True, metavar="A B | COMMAND...")
def command(
    *,
    baseline: str | None,
    budget: float,
    json_file: Path | None,
    html: Path | None,
    markdown_file: Path | None,
    quiet: bool,
    no_color: bool,
    words: tuple[str, ...],
) -> int:
    """Say which of two is faster, phase by phase, with an interval, and what differs.

    A and B are sessions, or commands, each as one word in quotes; commands are run in turns, in fresh processes. With
    --baseline a command is compared with itself at another revision, checked out into a folder of its own.
    """
    for file in (json_file, html, markdown_file):
        if file is not None:
            check_writable(file)
    screen = Screen(quiet=quiet, no_color=no_color)
    try:
        with ended_like_ctrl_c():
            found = _compared(words, baseline, budget, screen)
    finally:
        screen.done()
    show_comparison(screen, found, html=html, markdown_file=markdown_file, json_file=json_file)
    return ExitCode.DONE


def show_comparison(
    screen: Screen,
    found: Comparison,
    *,
    html: Path | None = None,
    markdown_file: Path | None = None,
    json_file: Path | None = None,
) -> None:
    """Show a comparison, and write what is asked for."""
    shape = comparison_document(found)
    if json_file is not None:
        write_json(json_file, found)
    if html is not None:
        write_text(html, page(shape, {}))
    if markdown_file is not None:
        write_text(markdown_file, markdown(shape))
    screen.show(render(shape))
    screen.show(render_next(found))


def _compared(words: tuple[str, ...], baseline: str | None, budget: float, screen: Screen) -> Comparison:
    until = time.monotonic() + budget
    if baseline is not None:
        return _with_baseline(words, baseline, until, screen)
    if len(words) != 2:
        raise click.UsageError("two are compared: two sessions, or two commands, each in quotes as one word")
    stored = {path.stem for path in sessions(folder_of_sessions(Path.cwd()))}
    if all(word in stored or is_session_file(word) for word in words):
        return compare_sessions(words[0], words[1])
    unknown = [
        word
        for word in words
        if word not in stored and len(shlex.split(word)) < 2 and not word.endswith(".py")
    ]
    if unknown:
        raise HotloopError(
            f"{unknown[0]!r} is neither a session here nor a command",
            "hotloop sessions lists what is stored; write commands in quotes: 'python train.py --epochs 1'",
        )
    commands = [_with_plan(tuple(shlex.split(word)), screen) for word in words]
    before_run(screen, commands[0][0])
    both = [
        msgspec.structs.replace(
            _observed(shlex.join(redacted_words(shlex.split(word))), one, Path.cwd(), screen), plan=plan
        )
        for word, (one, plan) in zip(words, commands, strict=True)
    ]
    return _duet((both[0], both[1]), until, screen)


def _with_plan(words: tuple[str, ...], screen: Screen) -> tuple[tuple[str, ...], PlanSteps]:
    """Take `hotloop run --plan FILE COMMAND` apart: COMMAND is measured with the plan on, as `run` would switch it on.

    Raises:
        HotloopError: there is no such command, or no plan that fits it.
    """
    if Path(words[0]).name != "hotloop" or words[1:2] != ("run",):
        resolve(words)
        return words, ()
    asked = run.make_context("run", list(words[2:])).params
    inner: tuple[str, ...] = asked["command"]
    steps, _ = planned(
        asked["plan_file"], resolve(inner), screen, likely=asked["likely"], force=asked["force"]
    )
    return inner, steps


def _with_baseline(words: tuple[str, ...], revision: str, until: float, screen: Screen) -> Comparison:
    before_run(screen, words)
    here = Path.cwd()
    with tree_at(revision, here) as folder:
        before = _observed(revision, words, folder, screen)
        after = _observed("now", words, here, screen)
        found = _duet((before, after), until, screen)
        old = msgspec.structs.replace(origin("compare", words), code=code_state(folder))
        return msgspec.structs.replace(found, code=code_between(old, origin("compare", words), here))


def _observed(name: str, words: tuple[str, ...], folder: Path, screen: Screen) -> Program:
    return program(name, words, folder, StopRule(seconds=OBSERVED_S), screen.progress, screen.alert)


def _duet(both: tuple[Program, Program], until: float, screen: Screen) -> Comparison:
    left_s = max(0.0, until - time.monotonic())
    found = compare_programs(*both, floor=MIN_MARGIN, limit_s=left_s, progress=screen.progress)
    before, after = (one.observation for one in both)
    packages = tuple(packages_of(one.argv, one.folder) for one in both)
    return msgspec.structs.replace(found, changes=changes(before, after, (packages[0], packages[1])), code=())


def compare_sessions(first: str, second: str) -> Comparison:
    """Return what two stored sessions allow to say.

    Raises:
        HotloopError: one of them holds no observation.
    """
    (before, old, was), (after, new, now) = _read(first), _read(second)
    found = compare_observations(before, after, (first, second))
    return msgspec.structs.replace(
        found,
        changes=changes(before, after, (_packages(old), _packages(new))),
        tuned=(was, now),
        code=code_between(old, new, Path.cwd()),
    )


def _packages(of: Origin | None) -> dict[str, str] | None:
    return None if of is None else of.packages


def _read(name: str) -> tuple[Observation, Origin | None, TunedSide | None]:
    with contextlib.closing(find_session(folder_of_sessions(Path.cwd()), name)) as session:
        seen = session.get(OBSERVATION, Observation)
        if seen is None:
            raise HotloopError(
                f"the session {name} holds no observation", "compare sessions of observe, diagnose or tune"
            )
        result = session.get(RESULT, TuneResult)
        return seen, session.get(ORIGIN, Origin), _tuned(result) if result is not None else None


def _tuned(result: TuneResult) -> TunedSide:
    plan = result.plan
    compared = plan.parity is not None and plan.parity.measured
    return TunedSide(
        steps={label(one.name, one.params): Ratio(one.ratio, one.low, one.high) for one in plan.steps},
        speedup=plan.speedup if plan.steps else None,
        learns_the_same=plan.parity.passed if compared and plan.parity is not None else None,
    )
