"""A Diagnosis on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from hotloop.model.diagnosis import Diagnosis
from hotloop.report.content.finding_filter import worth_showing
from hotloop.report.sections.diagnosed import diagnosed
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps


def render(diagnosis: Diagnosis, *, verbose: bool = False) -> RenderableType:
    """Return the diagnosis, ready to print.

    Args:
        diagnosis: what to show.
        verbose: list all findings, and the rules that could not judge.
    """
    return walk.render(diagnosed(diagnosis), verbose=verbose)


def render_next(diagnosis: Diagnosis, options: Sequence[str] = ()) -> RenderableType:
    """Return what to type next: a program that fails cannot be tuned.

    Args:
        diagnosis: what was shown.
        options: that the program needs in every run of it.
    """
    seen = diagnosis.observation
    if seen.out_of_memory is not None:
        steps = [("show this again", ["hotloop", "report"])]
    elif seen.exit_code:
        steps = [("your program failed: run it alone and fix it first", list(seen.command))]
    elif seen.step is None:
        steps = [("observe it again", ["hotloop", "observe", *options, *seen.command])]
    else:
        steps = [("try fixes and prove them", ["hotloop", "tune", *options, *seen.command])]
    first = next(iter(worth_showing(diagnosis.findings, seen.foreign_share)), None)
    if first is not None:
        steps.append(("the manual of a finding", ["hotloop", "explain", first.code]))
    return next_steps(steps)
