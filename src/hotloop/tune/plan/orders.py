"""What the probe and the environment of a process are told, so that a plan's steps are on in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.launch.environment import with_changes
from hotloop.optimize.registry import get
from hotloop.tune.executor import PlanSteps


def activation_orders(plan: PlanSteps) -> list[dict[str, Any]]:
    """Return what the probe is told to switch on."""
    return [get(candidate.name).order(candidate.params) for candidate in plan]


def with_plan(environment: Mapping[str, str], plan: PlanSteps) -> dict[str, str]:
    """Return the environment with every variable that the plan's optimizations want."""
    result = dict(environment)
    for candidate in plan:
        result = with_changes(result, get(candidate.name).environment(candidate.params))
    return result
