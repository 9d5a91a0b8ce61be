"""The machine's report on the terminal."""

from __future__ import annotations

from rich.console import RenderableType

from hotloop.machine.card.cache import is_noisy
from hotloop.model.machine import CheckStatus, MachineReport
from hotloop.report.sections.machine import machine, names
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps


def render(report: MachineReport) -> RenderableType:
    """Return the whole report, ready to print."""
    return walk.render(machine(report))


def render_next(report: MachineReport) -> RenderableType:
    """Return what to type next; COMMAND is what one types to train."""
    steps = []
    if is_noisy(report.card):
        steps.append(("the rates again, when it is quiet", ["hotloop", "machine", "--fresh"]))
    if names(report, CheckStatus.WARNING):
        steps.append(("look again, when that is mended", ["hotloop", "machine"]))
    return next_steps([*steps, ("what holds your program back", ["hotloop", "diagnose", "COMMAND"])])
