"""Plans with another batch size: the samples of their steps."""

from __future__ import annotations

import math

from hotloop.tune.executor import PlanSteps


def num_samples(plan: PlanSteps) -> float:
    """Return the samples of a plan's step over those of the program's own step: times are compared per sample."""
    return math.prod(step.samples for step in plan)
