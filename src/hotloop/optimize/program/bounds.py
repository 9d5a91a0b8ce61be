"""What the observation allows: shares of the step, and Amdahl's bound on what a change of them can gain."""

from __future__ import annotations

from hotloop.model.observation import Observation, Phase
from hotloop.optimize.optimization import DoesNotApply

MIN_SHARE = 0.01
"""A gain below 1% is never called faster (design: faster means above 1 + max(1%, floor)), so a phase that is
shorter than that cannot give one."""


def share(observation: Observation, *phases: Phase) -> float | None:
    """Return the phases' share of the step, 0 to 1; None: none of them was measured."""
    measured = [observation.phases[phase].share for phase in phases if phase in observation.phases]
    return min(sum(measured), 1.0) if measured else None


def bound(observation: Observation, *phases: Phase) -> float | None:
    """Return the largest speed ratio that taking these phases away could give; None: no bound is known."""
    part = share(observation, *phases)
    return None if part is None or part >= 1.0 else 1.0 / (1.0 - part)


def expected(part: float | None, factor: float) -> float:
    """Return the speed ratio of the step when `part` of it gets `factor` times as fast; unknown: 1."""
    return 1.0 if part is None else 1.0 / (1.0 - part + part / factor)


def require_share(observation: Observation, phase: Phase, what: str) -> None:
    """Refuse where a phase is too short to gain from.

    Raises:
        DoesNotApply: the phase was measured and takes less than 1% of the step.
    """
    part = share(observation, phase)
    if part is not None and part < MIN_SHARE:
        raise DoesNotApply(f"{what} takes {part:.1%} of the step: there is nothing to gain")
