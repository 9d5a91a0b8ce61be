"""The account of a whole run."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.observation import RunAccount
from hotloop.model.quantities import counted, duration, parts, shares
from hotloop.report.content.run_parts import part_name
from hotloop.report.document import Table

LEAST = 0.005
"""Of the run: less is summed up in one row."""


def run_table(account: RunAccount, *, every: bool = False) -> Table:
    """Return where the wall time of the command went, longest first.

    Args:
        account: of the run.
        every: give the phases of steps, and the smallest parts, rows of their own.
    """
    rows = list(_rows(account, every=every))
    seconds = [spent for _, spent, _ in rows]
    return Table(
        ("whole run", *parts([account.wall_s], account.wall_s), "100%", ""),
        tuple(
            (name, time, share, often)
            for (name, _, often), time, share in zip(
                rows, parts(seconds, sum(seconds)), shares(seconds), strict=True
            )
        ),
        figures=(1, 2),
        bars=tuple(seconds),
        hues=("forward",) * len(rows),
    )


def _rows(account: RunAccount, *, every: bool) -> Iterator[tuple[str, float, str]]:
    """Yield name, time and how often."""
    spent = {name.removesuffix("_s"): seconds for name, seconds in account.parts.items() if seconds > 0}
    if not every:
        steps = sum(seconds for name, seconds in spent.items() if name.startswith("step_"))
        spent = {name: seconds for name, seconds in spent.items() if not name.startswith("step_")}
        spent |= {"steps": steps} if steps else {}
    least_s = 0.0 if every else LEAST * account.wall_s
    shown = {name: seconds for name, seconds in spent.items() if seconds >= least_s or name == "steps"}
    for name, seconds in sorted(shown.items(), key=lambda part: -part[1]):
        yield part_name(name), seconds, _often(account, name, seconds)
    less = [seconds for name, seconds in spent.items() if name not in shown]
    if less:
        yield counted(len(less), "smaller part"), sum(less), ""


def _often(account: RunAccount, name: str, spent: float) -> str:
    num = {
        "evaluation": account.num_evaluations,
        "checkpoint": account.num_checkpoints,
        "compilation": account.num_compilations,
        "epoch_boundary": (account.num_epochs or 1) - 1,  # the first epoch begins with the run
    }.get(name)
    regular, every = account.num_regular_steps, account.num_steps
    if name == "steps" and every:
        of = f"{regular:,} of " if regular and regular < every else ""
        return f"{of}{counted(every, 'step')}"
    if not num:
        return ""
    return f"{num:,} times, {duration(spent / num)} each" if num > 1 else "once"
