"""What measuring a candidate, or proving a plan, is expected to add to the proven log gain.

The knowledge gradient of a decision between taking a candidate and leaving it (Frazier, Powell & Dayanik 2009, INFORMS
Journal on Computing 21:599), which is the expected opportunity cost that measuring takes away (Chick & Inoue 2001,
Operations Research 49:732). A candidate that was not measured is worth nothing yet: no plan holds it.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from hotloop.tune.search.working_plan import threshold

_UNIT = NormalDist()


def increase(
    mean: float,
    deviation: float,
    error: float,
    *,
    in_plan: bool = False,
    rival: float = 0.0,
) -> float:
    """Return by how much measuring a candidate once more is expected to raise the gain of the plan.

    Args:
        mean: of its log gain, as far as it is known.
        deviation: likewise.
        error: standard deviation of what the measurement shows.
        in_plan: whether it is a part of the plan as it is.
        rival: log gain of what would leave the plan for it.
    """
    then = deviation * error / math.hypot(deviation, error)
    moves = math.sqrt(max(0.0, deviation**2 - then**2))
    least = max(threshold(then), rival)
    if moves <= 0:
        return 0.0
    taken = partial_expectation(mean - rival, moves, least - rival)
    return max(0.0, taken - (mean if in_plan else 0.0))


def partial_expectation(mean: float, deviation: float, least: float) -> float:
    """Return the expectation of a normal variable where it is above a value, and 0 where it is not."""
    z = (mean - least) / deviation
    return mean * _UNIT.cdf(z) + deviation * _UNIT.pdf(z)


def chance_above(mean: float, deviation: float, least: float) -> float:
    """Return the chance that a normal variable is above a value."""
    return _UNIT.cdf((mean - least) / deviation) if deviation > 0 else float(mean > least)
