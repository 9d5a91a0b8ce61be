"""What the observation allows: shares of the step, and Amdahl's bound on what a change of them can gain."""

from __future__ import annotations

from hotloop.model.observation import Observation, Phase
from hotloop.optimize.optimization import DoesNotApply

MIN_SHARE = 0.01
"""A gain below 1% is never called faster (design: faster means above 1 + max(1%, floor)), so a phase that is
shorter than that cannot give one."""
FAULT_S, LONGEST_FAULT_S = 2e-6, 5e-6
"""A minor page fault, its page cleared: 2.7 us in a virtual machine (a volumetric net: 47,000 a second, 13% of a core),
0.5 us and less on metal."""
MAX_FAULTING = 0.5


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


def faulting(observation: Observation, fault_s: float = FAULT_S) -> float | None:
    """Return the share of the step that page faults take, 0 to 1; None: they were not counted.

    Args:
        observation: with a step.
        fault_s: of one fault, in seconds.
    """
    ranks = [rank for rank in observation.ranks if rank.page_faults is not None and rank.step is not None]
    parts = [(rank.page_faults or 0.0) * fault_s / rank.step.median_s for rank in ranks if rank.step]
    return min(max(parts), MAX_FAULTING) if parts else None


def require_share(observation: Observation, phase: Phase, what: str) -> None:
    """Refuse where a phase is too short to gain from.

    Raises:
        DoesNotApply: the phase was measured and takes less than 1% of the step.
    """
    part = share(observation, phase)
    if part is not None and part < MIN_SHARE:
        raise DoesNotApply(f"{what} takes {part:.1%} of the step: there is nothing to gain")
