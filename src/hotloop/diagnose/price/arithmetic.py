"""What of the computing is arithmetic on many numbers, and not the fixed price of calling operators."""

from __future__ import annotations

from hotloop.diagnose.price.cost import phase_share
from hotloop.model.observation import Observation, Phase
from hotloop.model.operators import Operators

CALL_S = 5e-6
"""Of an operator on a few numbers, under the profiler: 1 to 5 us (torch 2.13, one thread)."""


def arithmetic_share(observation: Observation) -> float | None:
    """Return the part of forward, backward and optimizer in arithmetic, 0 to 1; None: operators were not seen."""
    operators = observation.deep.operators if observation.deep is not None else None
    computing = phase_share(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    if operators is None or observation.step is None or not computing:
        return None
    return min(1.0, _arithmetic_s(operators) / (computing * observation.step.whole_s))


def _arithmetic_s(operators: Operators) -> float:
    if operators.device_s is not None:
        return operators.device_s
    return sum(max(0.0, one.self_s - one.count * CALL_S) for one in operators.operators)
