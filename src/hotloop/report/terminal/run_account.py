"""The account of a whole run as bars, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.observation import RunAccount
from hotloop.model.quantities import counted, duration, parts, shares
from hotloop.report.content.run_parts import part_name

BAR = 18
"""Columns of a full bar; with name, time, share and how often a line is 78 wide."""
LEAST = 0.005
"""Of the run: less is summed up in one line."""


def run_account(account: RunAccount) -> RenderableType:
    """Return where the wall time of the command went."""
    rows = list(_rows(account))
    seconds = [spent for _, spent, _ in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("whole run", no_wrap=True)
    table.add_column(*parts([account.wall_s], account.wall_s), justify="right", no_wrap=True)
    table.add_column("100%", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    for (name, spent, often), time, share in zip(
        rows, parts(seconds, sum(seconds)), shares(seconds), strict=True
    ):
        bar = Text("█" * max(1, round(spent / account.wall_s * BAR)), style="blue")
        table.add_row(name, time, share, bar, often)
    return table


def _rows(account: RunAccount) -> Iterator[tuple[str, float, str]]:
    """Yield name, time and how often, longest first."""
    spent = {name.removesuffix("_s"): seconds for name, seconds in account.parts.items() if seconds > 0}
    steps = sum(seconds for name, seconds in spent.items() if name.startswith("step_"))
    rest = {name: seconds for name, seconds in spent.items() if not name.startswith("step_")}
    shown = {name: seconds for name, seconds in rest.items() if seconds >= LEAST * account.wall_s}
    if steps:
        shown["steps"] = steps
    for name, seconds in sorted(shown.items(), key=lambda part: -part[1]):
        yield part_name(name), seconds, _often(account, name, seconds)
    less = [seconds for name, seconds in rest.items() if name not in shown]
    if less:
        yield counted(len(less), "smaller part"), sum(less), ""


def _often(account: RunAccount, name: str, spent: float) -> str:
    num = {
        "evaluation": account.num_evaluations,
        "checkpoint": account.num_checkpoints,
        "compilation": account.num_compilations,
        "epoch_boundary": account.num_epochs,
    }.get(name)
    regular, every = account.num_regular_steps, account.num_steps
    if name == "steps" and every:
        return (
            f"{regular:,} of {counted(every, 'step')}"
            if regular and regular < every
            else counted(every, "step")
        )
    if not num:
        return ""
    return f"{num:,} times, {duration(spent / num)} each" if num > 1 else "once"
