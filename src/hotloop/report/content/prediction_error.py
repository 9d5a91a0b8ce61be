"""How far predictions were from what trials measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from hotloop.model.tuning import Trial


def with_prediction(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that a prediction can be held against.

    A prediction is of the program as it was; beside other changes a different gain is to be expected.
    """
    return [
        one for one in trials if one.predicted is not None and one.ratio is not None and not one.incumbent
    ]


def prediction_error(trials: Sequence[Trial]) -> str | None:
    """Return the prediction error in a sentence; None: no trial against the program as it was had a prediction."""
    errors = {
        one.candidate.label: abs(math.log(one.predicted.ratio / one.ratio.ratio))
        for one in with_prediction(trials)
        if one.predicted is not None and one.ratio is not None
    }
    if not errors:
        return None
    worst = max(errors, key=lambda label: errors[label])
    num = len(errors)
    said = f"{num} gain{'s' * (num != 1)} predicted before the trial, median error {_percent(median(errors.values()))}"
    return said if num == 1 else f"{said}, largest {_percent(errors[worst])} ({worst})"


def _percent(log_error: float) -> str:
    return f"{math.expm1(log_error):.0%}"
