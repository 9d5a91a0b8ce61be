"""`hotloop tune` on a published script, beside the plan that a person would write, both measured anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.published.corpus import Entry
from benchmarks.published.place import Absent, lay_out, lengthened
from benchmarks.tune.side_by_side import inside, shown
from benchmarks.tune.tuned import Tuned, means, steps_of, tune


def tuned(entry: Entry, sources: Path, site: Path | None, budget_s: float, keep: Path | None = None) -> Tuned:
    """Tune a script, and measure what came of it.

    Args:
        entry: the script.
        sources: where the repositories lie.
        site: packages that they need.
        budget_s: of the session.
        keep: a folder for the session's screen and its files; None: they are not kept.
    """
    row = Tuned(name=entry.name, repository=entry.repository, budget_s=budget_s)
    with TemporaryDirectory(prefix="published-") as scratch:
        try:
            program = lay_out(lengthened(entry), sources, site, Path(scratch))
        except Absent as why:
            row.absent = str(why)
            return row
        with inside(program.folder, program.environment):
            plans = [steps_of(one) for one in (entry.by_hand, *entry.or_by_hand) if one]
            tune(row, program.argv, plans, keep=keep)
    return row


def table(rows: Sequence[Tuned]) -> list[str]:
    """Return the rows as a table, with the geometric means below."""
    ran = [row for row in rows if not row.absent]
    lines = [
        "| script | repository | step | budget | wall | trials | claimed | measured anew | by hand | plan over by hand "
        "| plan | the plan by hand |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.repository} | {row.step_s * 1e3:.1f} ms | {row.budget_s:.0f} s | {row.wall_s:.0f} s "
            f"| {row.num_trials} "
            f"| {shown(row.claimed)} | {shown(row.measured)} | {shown(row.by_hand)} | {shown(row.over_by_hand)} "
            f"| {', '.join(row.plan) or row.failed[-60:] or 'empty'} | {', '.join(row.by_hand_steps)} |"
            for row in ran
        ),
        "",
    ]
    return [*lines, means(ran)]
