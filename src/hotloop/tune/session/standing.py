"""How far a session is, in one line for the person who waits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.quantities import counted
from hotloop.model.tuning import Trial


def standing(plan: Sequence[Candidate], trials: Sequence[Trial], proven: float | None) -> str:
    """Return the line.

    Args:
        plan: what is believed in by now.
        trials: everything that was tried.
        proven: the speed of the fastest plan that held in fresh processes; None: none did yet.
    """
    return f"{counted(len(trials), 'trial')} done; {_best(plan, trials, proven)}"


def _best(plan: Sequence[Candidate], trials: Sequence[Trial], proven: float | None) -> str:
    if proven is not None:
        return f"proven so far: {proven:.2f}x"
    if not plan:
        return "nothing has helped so far"
    seen = {trial.candidate.label: trial.ratio.ratio for trial in trials if trial.ratio is not None}
    names = " + ".join(dict.fromkeys(step.name for step in plan))
    if not any(step.label in seen for step in plan):
        return f"expected to help, not measured yet: {names}"
    about = math.prod(seen.get(step.label, 1.0) for step in plan)
    return f"best so far: about {about:.2f}x, not proven yet, with {names}"
