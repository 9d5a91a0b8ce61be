"""What a faster step cannot shorten: a program that ends soon spends most of its time on starting."""

from __future__ import annotations

from hotloop.model.quantities import counted, duration
from hotloop.model.tuning import Baseline

MOSTLY = 0.5
"""Of the run, what its steps take at least where nothing is said."""


def short_run(baseline: Baseline) -> str | None:
    """Return what the steps are of the whole run; None: most of it, or it was not seen to end."""
    run = baseline.own_run
    if run is None or run.training_s >= MOSTLY * run.wall_s:
        return None
    return (
        f"your program ended after {counted(run.num_steps, 'step')}, which took {duration(run.training_s)} of its "
        f"{duration(run.wall_s)}: the gain is that of its steps"
    )
