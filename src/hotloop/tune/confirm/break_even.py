"""After how many steps what a step of a plan costs once, such as compilation, is earned back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Measured, Switched, Trial


def break_even(
    trials: Sequence[Trial], step: Candidate, plan_step_s: Sequence[float], ratio: Ratio
) -> int | None:
    """Return the steps of the program; None: it costs nothing once, or its gain is not known.

    Args:
        trials: of the session.
        step: of the plan.
        plan_step_s: seconds of a step with the plan, in each of its sets.
        ratio: the step's factor.
    """
    outcomes = [trial.outcome for trial in trials if trial.candidate == step]
    # Later arms find what the first one has compiled: the largest cost is the user's first run.
    cost = max(
        [one.one_off_s or 0.0 for one in outcomes if isinstance(one, (Measured, Switched))], default=0.0
    )
    gain = median(plan_step_s) * (ratio.ratio - 1) if plan_step_s else 0.0
    return math.ceil(cost / gain) if cost > 0 and gain > 0 else None
