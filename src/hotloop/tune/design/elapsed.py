"""What steps take on the clock, with what comes between them: evaluations, new epochs, plots, environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hotloop.model.observation import Observation
from hotloop.model.step_series import StepKind

RARE = 0.45
"""Of turns, with an evaluation or a new epoch."""
LONG = 3.0
"""Times the median step: something else than a step was in it."""
OFTEN = 3
"""Long steps from which on their share of all steps is known."""
REGULAR = 0.75
"""Of the distances between such steps, which are the same where those come in a rhythm."""


def elapsed_step_s(observation: Observation) -> float:
    """Return what a step takes on the clock, with all that lies between steps, where enough was seen to know it."""
    step, run, epoch_steps = observation.step, observation.run, observation.epoch_steps
    assert step is not None
    whole_epochs = epoch_steps is not None and (run.num_steps or 0) >= epoch_steps > 0
    if not run.num_steps or not (whole_epochs or len(_long_steps(observation)) >= OFTEN):
        return step.median_s
    return max(step.median_s, step.median_s / step.p50_s * run.training_s / run.num_steps)


def interrupted_rarely(observation: Observation, num_steps: int) -> bool:
    """Whether few stretches of so many steps have an evaluation or a new epoch in them."""
    seen = [series for series in observation.series if series.num]
    num = sum(len({*series.evaluations, *series.epochs}) for series in seen)
    share = num / max(1, sum(series.num for series in seen))
    return share * num_steps <= RARE


def holds_more(observation: Observation, num_steps: int) -> bool:
    """Whether most stretches of so many steps have something else in them, which is timed with them then."""
    num = max((series.num for series in observation.series), default=0)
    long = len(_long_steps(observation)) * num_steps > RARE * num
    return long or not interrupted_rarely(observation, num_steps)


def period_steps(observation: Observation) -> int:
    """Return after how many steps an evaluation, or something long, comes again; 1: in no rhythm, or there is nothing.

    Forwards without gradients (rollouts too) are known as what they are; a long step may be a neighbour's doing.
    """
    evaluations = next((one.evaluations for one in observation.series if one.num), ())
    return _rhythm(evaluations) or _rhythm(_long_steps(observation)) or 1


def _rhythm(steps: Sequence[int] | np.ndarray) -> int:
    """Return the distance that most steps have from one another; 0: there is none."""
    apart = Counter(np.diff(steps).tolist())
    if apart.total() < OFTEN:
        return 0
    distance, num = apart.most_common(1)[0]
    return int(distance) if num >= REGULAR * apart.total() else 0


def _long_steps(observation: Observation) -> np.ndarray:
    """Return the numbers of the steps after warm-up that took far longer than most."""
    series = next((one for one in observation.series if one.num and one.duration_s), None)
    if series is None:
        return np.empty(0, dtype=int)
    seconds = np.frombuffer(series.duration_s, "<f4")
    kinds = np.frombuffer(series.kind, np.uint8)
    usual = (kinds != StepKind.WARM_UP) & (kinds != StepKind.PROFILED)
    return np.flatnonzero(usual & (seconds > LONG * np.median(seconds)))
