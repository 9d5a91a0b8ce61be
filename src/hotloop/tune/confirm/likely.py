"""What was promising and could not be proven in time: said, kept apart from the plan, never applied unasked."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hotloop.model.ratio import Ratio
from hotloop.model.tuning import RESUME_BUDGET, LikelyPlan, PlanStep
from hotloop.stats.verdict import FUTILE
from hotloop.tune.confirm.set_pairs import MIN_SETS
from hotloop.tune.confirm.standing import Standing
from hotloop.tune.executor import PlanSteps


def likely_from_sets(seen: Standing, steps: tuple[PlanStep, ...], command: Sequence[str]) -> LikelyPlan:
    """Return a plan that fresh processes did not settle."""
    ratio = seen.total.ratio
    assert ratio is not None, "it was measured"
    return _likely(steps, ratio, why_open(seen), command)


def why_open(seen: Standing) -> str:
    """Return what a proof lacks: sets, that it learns the same, or a clear difference."""
    if seen.beside is not None:
        return f"{seen.beside.reason}; tune on a quiet machine"
    if seen.num_sets < MIN_SETS:
        return f"measured in {seen.num_sets} of the {MIN_SETS} sets of fresh processes that a proof needs"
    if not seen.parity.passed:
        said = (
            "it does not learn the same"
            if seen.parity.decided
            else "whether it learns the same is not decided"
        )
        return f"{said}: {seen.parity.evidence}"
    return seen.total.reason.removesuffix(FUTILE)  # a session that goes on runs them all the same


def likely_from_search(plan: PlanSteps, ratio: Ratio, how: str, command: Sequence[str]) -> LikelyPlan:
    """Return a plan that no fresh process was run with against the original."""
    share = len(plan)
    steps = tuple(
        PlanStep(
            name=step.name,
            params=step.params,
            ratio=ratio.ratio ** (1 / share),
            low=ratio.low ** (1 / share),
            high=ratio.high ** (1 / share),
            numerics=step.numerics,
            method=how,
            proven=False,
        )
        for step in plan
    )
    return _likely(steps, ratio, f"{how}; not confirmed in fresh processes", command)


def _likely(steps: tuple[PlanStep, ...], ratio: Ratio, reason: str, command: Sequence[str]) -> LikelyPlan:
    return LikelyPlan(
        steps=steps,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        reason=reason,
        resume=f"hotloop tune --resume --budget {RESUME_BUDGET} {shlex.join(command)}",
    )
