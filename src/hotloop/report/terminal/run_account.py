"""The account of a whole run as bars, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.observation import RunAccount
from hotloop.report.terminal.quantities import duration, percent

BAR = 18
"""Columns of a full bar; with name, time, share and how often a line is 78 wide."""
LEAST = 0.005
"""Of the run: less is summed up in one line."""
_NAMES = {
    "interpreter": "interpreter",
    "launcher": "launcher, parents",
    "import": "imports",
    "setup": "set-up",
    "first_batch": "first batch",
    "first_step": "first step",
    "irregular_step": "between steps",
    "held_by_hotloop": "held by hotloop",
    "shutdown": "shut-down",
    "unaccounted": "not accounted for",
}


def run_account(account: RunAccount) -> RenderableType:
    """Return where the wall time of the command went."""
    table = Table.grid(padding=(0, 1))
    for right in (False, True, True, False, False):
        table.add_column(justify="right" if right else "left", no_wrap=True)
    for name, spent, often in _rows(account):
        share = spent / account.wall_s
        bar = Text("█" * max(1, round(share * BAR)), style="blue")
        table.add_row(name, duration(spent), percent(share), bar, often)
    return Group(Text(f"run {duration(account.wall_s)}"), table)


def _rows(account: RunAccount) -> Iterator[tuple[str, float, str]]:
    """Yield name, time and how often, longest first."""
    spent = {name.removesuffix("_s"): seconds for name, seconds in account.parts.items() if seconds > 0}
    steps = sum(seconds for name, seconds in spent.items() if name.startswith("step_"))
    parts = {name: seconds for name, seconds in spent.items() if not name.startswith("step_")}
    shown = {name: seconds for name, seconds in parts.items() if seconds >= LEAST * account.wall_s}
    if steps:
        shown["steps"] = steps
    for name, seconds in sorted(shown.items(), key=lambda part: -part[1]):
        yield _NAMES.get(name, name.replace("_", " ")), seconds, _often(account, name, seconds)
    less = [seconds for name, seconds in parts.items() if name not in shown]
    if less:
        yield f"{len(less)} smaller parts" if len(less) > 1 else "one smaller part", sum(less), ""


def _often(account: RunAccount, name: str, spent: float) -> str:
    num = {
        "evaluation": account.num_evaluations,
        "checkpoint": account.num_checkpoints,
        "compilation": account.num_compilations,
        "epoch_boundary": account.num_epochs,
    }.get(name)
    if name == "steps" and account.num_steps:
        return f"{account.num_steps} in the whole run"
    if not num:
        return ""
    return f"{num} times, {duration(spent / num)} each" if num > 1 else "once"
