"""A plan's steps with the factor of each, how it was obtained, and that they multiply to the confirmed total."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Measured, PlanStep, Switched, Trial
from hotloop.stats.log_ratio import half_width, ratio_of
from hotloop.stats.switching import SwitchFit
from hotloop.stats.verdict import Verdict
from hotloop.tune.confirm.evidence import Confirmation, ConfirmedSets
from hotloop.tune.executor import PlanSteps
from hotloop.tune.verdict.decision import one_off_s

SWITCHED = "switched off and on in one process, beside the plan's steps that need a process of their own"
WEIGHED = "all that was measured of it, weighed with what was expected"
ARMS = "with and without in fresh processes"
LEFT = "what the other steps leave of the whole"
WHOLE = "the whole plan in fresh processes"
_Z = 1.96


class _Factor(msgspec.Struct):
    """A step's log factor and half of its interval; None: nothing was measured of it alone."""

    gain: float | None
    half: float
    method: str
    proven: bool = False


class Factors:
    """Finds the factor of each step of a plan.

    Args:
        sets: of the confirmation.
        trials: of the search.
        fits: of the knobs that were switched; a later one is beside a knob of the one before it.
        own_gain: what is believed of the log gain of a state over another one, and its standard deviation.
        heed_neighbours: names of those whose gain is what other processes take.
    """

    def __init__(
        self,
        sets: ConfirmedSets,
        trials: Sequence[Trial],
        fits: Sequence[SwitchFit],
        own_gain: Callable[[Collection[str], Collection[str]], tuple[float, float]],
        heed_neighbours: Collection[str],
    ) -> None:
        self._sets = sets
        self._trials = trials
        self._fits = fits
        self._own_gain = own_gain
        self._heed_neighbours = heed_neighbours

    def steps(self, confirmation: Confirmation) -> tuple[PlanStep, ...]:
        """Return the plan's steps with factors that multiply to the total exactly."""
        plan, total = confirmation.plan, confirmation.total.ratio
        assert total is not None, "what was confirmed has a ratio"
        found = [self._factor(plan, at, total) for at in range(len(plan))]
        ratios = self._by_stretches(plan, found, total)
        return tuple(
            PlanStep(
                name=step.name,
                params=step.params,
                ratio=ratio.ratio,
                low=ratio.low,
                high=ratio.high,
                numerics=step.numerics,
                break_even_steps=self._break_even(plan, at),
                evidence=self._evidence(plan, at, ratio, factor),
                method=factor.method,
                proven=factor.proven and ratio.low > 1,
                caution=self._caution(plan, step),
            )
            for at, (step, ratio, factor) in enumerate(zip(plan, ratios, found, strict=True))
        )

    def _by_stretches(self, plan: PlanSteps, found: Sequence[_Factor], total: Ratio) -> list[Ratio]:
        """Return the factors, so that those up to each beginning that was an arm make up what that arm measured.

        What was switched in another process may be off by more than its interval says (caches, carry-over); what
        stands beside it in arms of its own must not have to make up for that.
        """
        ends = [end for end in range(1, len(plan)) if self._stretch(plan, 0, end) is not None]
        bounds = list(pairwise([0, *ends, len(plan)]))
        stretches = [self._stretch(plan, *bound) for bound in bounds]
        if len(bounds) == 1 or None in stretches:
            return _multiplied(found, total)
        whole = _multiplied([_of(one, ARMS) for one in stretches if one is not None], total)
        return [
            ratio
            for (begin, end), stretch in zip(bounds, whole, strict=True)
            for ratio in ([stretch] if end - begin == 1 else _multiplied(found[begin:end], stretch))
        ]

    def _stretch(self, plan: PlanSteps, begin: int, end: int) -> Ratio | None:
        decision = self._sets.between(plan[:begin], plan[:end])
        return decision.ratio if decision is not None else None

    def _factor(self, plan: PlanSteps, at: int, total: Ratio) -> _Factor:
        if len(plan) == 1:
            return _of(total, WHOLE, proven=True)
        before, after, step = plan[:at], plan[: at + 1], plan[at]
        decision = self._sets.between(before, after)
        if decision is not None and decision.ratio is not None:
            return _of(decision.ratio, ARMS, proven=decision.verdict is Verdict.FASTER)
        labels = [one.label for one in after], [one.label for one in before]
        fit = next((fit for fit in reversed(self._fits) if step.label in fit.knobs), None)
        tried = next((t for t in reversed(self._trials) if t.candidate == step and t.ratio), None)
        if fit is not None and fit.ratio(*labels, confidence=1 - 0.01 / len(fit.knobs)).low > 1:
            return _of(fit.ratio(*labels), SWITCHED, proven=True)
        if fit is None and tried is not None and tried.ratio is not None and _beyond_luck(tried.ratio):
            return _of(tried.ratio, tried.method, proven=True)
        mean, deviation = self._own_gain(*labels)
        return (
            _Factor(mean, _Z * deviation, WEIGHED)
            if deviation > 0
            else _Factor(None, half_width(total), LEFT)
        )

    def _break_even(self, plan: PlanSteps, at: int) -> int | None:
        """Steps after which a step's one-off cost is earned back."""
        before, after, step = plan[:at], plan[: at + 1], plan[at]
        outcomes = [trial.outcome for trial in self._trials if trial.candidate == step]
        # Whatever compiled it first was cold.
        costs = [one.one_off_s or 0.0 for one in outcomes if isinstance(one, (Measured, Switched))]
        gains = []
        for order, record in self._sets.counted(plan):
            if before not in order.plans or after not in order.plans:
                continue
            first, last = record.arm(order.plans.index(before)), record.arm(order.plans.index(after))
            if first is not None and last is not None:
                costs.append(one_off_s(first, last) or 0.0)
                gains.append(first.step_s - last.step_s)
        if not gains:
            return None
        # Later arms find what the first one has compiled: the largest cost is the user's first run.
        cost, gain = max(costs), sorted(gains)[len(gains) // 2]
        return math.ceil(cost / gain) if cost > 0 and gain > 0 else None

    def _caution(self, plan: PlanSteps, step: Candidate) -> str:
        """Say where a step may cost time: threads that sleep at barriers were 7.5 beside others, and 0.57 alone."""
        noisy = any(record.beside_others for _, record in self._sets.counted(plan))
        if step.name not in self._heed_neighbours or not noisy:
            return ""
        return (
            f"{step.name} was measured while other processes used the CPU; on a quiet machine it may cost time: "
            "tune again there"
        )

    def _evidence(self, plan: PlanSteps, at: int, ratio: Ratio, factor: _Factor) -> str:
        step = plan[at]
        order, record = self._sets.of(plan)[-1]
        arm = record.arm(order.plans.index(plan))
        effects = arm.effects if arm is not None else ()
        said = [effect.evidence for effect in effects if effect.name == step.name][:1]
        if not (factor.proven and ratio.low > 1):
            said.append("part of the proven whole: its own factor is not proven")
        if step.max_gain is not None and ratio.low > step.max_gain:
            limit = f"{step.max_gain:.2f}x"
            said.append(
                f"more than the {limit} that the observation allows, measured again and still so: unexplained"
            )
        return "; ".join(said)


def _beyond_luck(ratio: Ratio) -> bool:
    """Whether a gain is one even if it was picked out of many: three times as wide its interval does not hold 1."""
    return math.log(ratio.ratio) > 3 * half_width(ratio)


def _of(ratio: Ratio, method: str, *, proven: bool = False) -> _Factor:
    """A factor; one that a screening picked out of many is seldom proven by what it was picked for."""
    return _Factor(math.log(ratio.ratio), half_width(ratio), method, proven)


def _multiplied(found: Sequence[_Factor], total: Ratio) -> list[Ratio]:
    """What the factors and the total differ by goes to those that are known worst, by their variance."""
    missing = math.log(total.ratio) - math.fsum(factor.gain for factor in found if factor.gain is not None)
    unknown = [factor for factor in found if factor.gain is None]
    for factor in unknown:
        factor.gain = missing / len(unknown)
    spread = [0.0 if unknown else factor.half**2 for factor in found]
    rest = 0.0 if unknown else missing
    weights = [one / math.fsum(spread) if math.fsum(spread) else 1 / len(found) for one in spread]
    ratios = []
    for factor, weight in zip(found, weights, strict=True):
        gain = (factor.gain or 0.0) + rest * weight
        half = max(factor.half, abs(rest * weight) / _Z)
        ratios.append(ratio_of(gain, half))
    return ratios
