"""The smallest batch on the plateau of throughput."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotloop.model.optimization import Candidate
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import Gains


def on_plateau(
    plan: PlanSteps,
    measured: Sequence[Candidate],
    gains: Gains,
    threshold: Callable[[float], float],
) -> PlanSteps:
    """Return a plan whose batch is the smallest that is shown to help and that no larger one is shown to beat.

    Args:
        plan: what is expected to be fastest.
        measured: candidates that may be part of it.
        gains: what is believed of log gains.
        threshold: log gain from which something is shown to help, given its standard deviation.
    """
    for step in plan:
        others = [one for one in measured if one.name == step.name and 1 < one.samples < step.samples]
        for smaller in sorted(others, key=lambda one: one.samples):
            instead = tuple(smaller if one == step else one for one in plan)
            labels, rest = {one.label for one in instead}, {one.label for one in plan if one != step}
            gain, deviation = gains.gain(labels, rest)
            lead, uncertainty = gains.gain({one.label for one in plan}, labels)
            if gain >= threshold(deviation) and lead < threshold(uncertainty):
                return instead
    return plan
