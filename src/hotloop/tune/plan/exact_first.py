"""The order of a plan's steps: what changes the numbers comes behind what does not."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.optimization import Candidate, Numerics
from hotloop.tune.executor import PlanSteps


def exact_first(plan: Sequence[Candidate]) -> PlanSteps:
    """Return a plan with what changes numbers behind what does not: its exact beginning can be proven by itself."""
    return tuple(sorted(plan, key=is_loose))


def is_loose(step: Candidate) -> bool:
    """Whether a step changes the numbers."""
    return step.numerics is not Numerics.EXACT
