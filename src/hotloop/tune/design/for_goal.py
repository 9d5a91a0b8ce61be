"""Which optimizations are tried for a goal."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.goal import Aim, Goal
from hotloop.optimize.optimization import Optimization

FAMILY = "memory"
"""Its changes cost time: they are tried where memory counts, or by name."""


def unoffered(optimization: Optimization, aim: Aim, only: Sequence[str]) -> str | None:
    """Return why an optimization is not tried for a goal; None: it is.

    Args:
        optimization: of the catalogue.
        aim: what a plan is for.
        only: names that the user asked for.
    """
    if optimization.name in only:
        return None
    if optimization.proven_alone:
        return f"its losses cannot be compared, so it is proven apart: --only {optimization.name}"
    if aim.goal is Goal.MEMORY:
        return None if optimization.saves_memory else "not known to save memory (--goal memory)"
    if optimization.family == FAMILY and optimization.saves_memory and not aim.counts_memory:
        return "saves memory and no time: tried with --goal memory or --fit"
    return None
