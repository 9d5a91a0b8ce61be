"""A confirmed plan as the steps that are written down: factors that multiply to the total."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import PlanStep
from hotloop.tune.confirm.step_status import Confirmation
from hotloop.tune.executor import SetRecord
from hotloop.tune.verdict.decision import one_off_s


def plan_steps(confirmation: Confirmation) -> tuple[PlanStep, ...]:
    """Return the plan's steps with the factors that were confirmed, scaled to multiply to the total exactly.

    The total and the factors are robust means of the same rounds; what they differ by comes of taking those
    means, and is spread over the factors and their intervals.
    """
    ratios = _ratios(confirmation)
    return tuple(
        PlanStep(
            name=candidate.name,
            params=candidate.params,
            ratio=ratio.ratio,
            low=ratio.low,
            high=ratio.high,
            numerics=candidate.numerics,
            break_even_steps=_break_even(confirmation.records, at),
            evidence=_evidence(confirmation.records, at, candidate, ratio),
        )
        for at, (candidate, ratio) in enumerate(zip(confirmation.plan, ratios, strict=True))
    )


def _ratios(confirmation: Confirmation) -> list[Ratio]:
    found = [decision.ratio for decision in confirmation.steps if decision.ratio is not None]
    total = confirmation.total.ratio
    assert total is not None, "a confirmed plan has a ratio"
    scale = (total.ratio / math.prod(ratio.ratio for ratio in found)) ** (1 / len(found))
    return [Ratio(ratio.ratio * scale, ratio.low * scale, ratio.high * scale) for ratio in found]


def _break_even(records: Sequence[SetRecord], at: int) -> int | None:
    """Steps after which a step's one-off cost is earned back."""
    costs, gains = [], []
    for record in records:
        before, after = record.arms[at], record.arms[at + 1]
        costs.append(one_off_s(before.first_steps_s, after.first_steps_s) or 0.0)
        gains.append(before.step_s - after.step_s)
    # The first arm of a plan compiles cold, later ones find its code: the largest cost is the user's first run.
    cost, gain = max(costs), sorted(gains)[len(gains) // 2]
    return math.ceil(cost / gain) if cost > 0 and gain > 0 else None


def _evidence(records: Sequence[SetRecord], at: int, candidate: Candidate, ratio: Ratio) -> str:
    effects = records[-1].arms[at + 1].effects
    seen = next((effect.evidence for effect in effects if effect.name == candidate.name), "")
    limit = candidate.max_gain
    if limit is None or ratio.low <= limit:
        return seen
    doubt = (
        f"more than the {limit:.2f}x that the observation allows, measured again and still so: unexplained"
    )
    return f"{seen}; {doubt}" if seen else doubt
