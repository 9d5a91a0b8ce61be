"""What to type after a comparison."""

from __future__ import annotations

import shlex

from rich.console import RenderableType

from hotloop.model.comparison import Comparison
from hotloop.report.terminal.layout import next_steps


def render_next(found: Comparison, budget_s: float) -> RenderableType:
    """Return what to type next.

    Args:
        found: the comparison.
        budget_s: that it had.
    """
    before, after = found.before.command, found.after.command
    steps = [("bottleneck of the second", ["hotloop", "diagnose", *after])]
    if found.verdict == "inconclusive" and before != after:
        both = [shlex.join(before), shlex.join(after)]
        if found.rounds:
            more = (
                "resolve it with more pairs",
                ["hotloop", "compare", "--budget", f"{budget_s / 30:g}m", *both],
            )
        else:
            more = ("resolve it side by side, in turns", ["hotloop", "compare", *both])
        steps.insert(0, more)
    return next_steps(steps)
