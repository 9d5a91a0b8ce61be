"""`hotloop compare`: which of two is faster, phase by phase."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click
import msgspec

from hotloop.cli.files import write_json, write_text
from hotloop.cli.options import NewScreen, ResultFile, TimeSpan, output_options
from hotloop.cli.programs import programs
from hotloop.cli.run import command as run
from hotloop.cli.run import planned
from hotloop.launch.command import shell_words
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.machine.environment.code_state import code_state
from hotloop.machine.environment.command_packages import packages_of
from hotloop.model.comparison import Comparison
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.secrets import redacted_words
from hotloop.observe.run.origin import origin
from hotloop.observe.run.stopping import StopRule
from hotloop.report.html.page import page
from hotloop.report.markdown import markdown
from hotloop.report.sections.comparison import comparison_document
from hotloop.report.terminal.compared import render_next
from hotloop.report.terminal.report import render
from hotloop.report.terminal.screen import Screen
from hotloop.review.changes import changes, code_between
from hotloop.review.compared import compare_sessions
from hotloop.stats.verdict import MIN_MARGIN
from hotloop.store.nearest import folder_of_sessions
from hotloop.store.session import is_session_file, sessions
from hotloop.tune.compare.baseline_tree import tree_at
from hotloop.tune.compare.program import OBSERVED_S, Program
from hotloop.tune.executor import PlanSteps

_OUT = ResultFile()
DEFAULT_S = 300.0


@click.command(
    "compare",
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    epilog="Example: hotloop compare 'python train.py' 'python train.py --fused'",
)
@click.option("--baseline", metavar="REV", help="Compare COMMAND with itself at this Git revision.")
@click.option(
    "--budget",
    type=TimeSpan(),
    default=f"{DEFAULT_S / 60:g}m",
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
    new_screen: NewScreen,
    words: tuple[str, ...],
) -> int:
    """Say which of two is faster, phase by phase, with an interval, and what differs.

    A and B are sessions, or commands, each as one word in quotes; commands are run in turns, in fresh processes. With
    --baseline a command is compared with itself at another revision, checked out into a folder of its own.
    """
    screen = new_screen()
    try:
        with ended_like_ctrl_c():
            found = _compared(words, baseline, budget, screen)
    finally:
        screen.done()
    show_comparison(screen, found, budget, html=html, markdown_file=markdown_file, json_file=json_file)
    return ExitCode.DONE


def show_comparison(
    screen: Screen,
    found: Comparison,
    budget_s: float = DEFAULT_S,
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
    screen.show(render_next(found, budget_s))


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
        if word not in stored and len(shell_words(word)) < 2 and not word.endswith(".py")
    ]
    if unknown:
        raise HotloopError(
            f"{unknown[0]!r} is neither a session here nor a command",
            "hotloop sessions lists what is stored; write commands in quotes: 'python train.py --epochs 1'",
        )
    commands = [_with_plan(tuple(shell_words(word)), screen) for word in words]
    programs().look(screen, commands[0][0])
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
        programs().resolve(words)
        return words, ()
    asked = run.make_context("run", list(words[2:])).params
    inner: tuple[str, ...] = asked["command"]
    steps, _ = planned(
        asked["plan_file"], programs().resolve(inner), screen, likely=asked["likely"], force=asked["force"]
    )
    return inner, steps


def _with_baseline(words: tuple[str, ...], revision: str, until: float, screen: Screen) -> Comparison:
    programs().look(screen, words)
    here = Path.cwd()
    with tree_at(revision, here) as folder:
        before = _observed(revision, words, folder, screen)
        after = _observed("now", words, here, screen)
        found = _duet((before, after), until, screen)
        old = msgspec.structs.replace(origin("compare", words), code=code_state(folder))
        return msgspec.structs.replace(found, code=code_between(old, origin("compare", words), here))


def _observed(name: str, words: tuple[str, ...], folder: Path, screen: Screen) -> Program:
    return programs().observe(
        name, words, folder, StopRule(seconds=OBSERVED_S), screen.progress, screen.alert
    )


def _duet(both: tuple[Program, Program], until: float, screen: Screen) -> Comparison:
    left_s = max(0.0, until - time.monotonic())
    found = programs().duet(*both, floor=MIN_MARGIN, limit_s=left_s, progress=screen.progress)
    before, after = (one.observation for one in both)
    packages = tuple(packages_of(one.argv, one.folder) for one in both)
    return msgspec.structs.replace(found, changes=changes(before, after, (packages[0], packages[1])), code=())
