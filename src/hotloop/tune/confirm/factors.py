"""A plan's steps with the factor of each, how it was obtained, and that they multiply to the confirmed total."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import PlanStep, Trial
from hotloop.stats.log_ratio import half_width, ratio_of
from hotloop.stats.switching import SwitchFit
from hotloop.tune.confirm.break_even import break_even
from hotloop.tune.confirm.standing import ConfirmedSets, Standing
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import Gains

SWITCHED = "switched off and on in one process, with what arms and the confirmation told, beside the plan's other steps"
ARMS = "with and without in processes of their own, beside the plan's other steps"
WHOLE = "the whole plan in fresh processes"
BEYOND_LUCK = 1.5
"""Halves of its interval that a step's factor is above 1 where it is one even if it was picked out of many."""
_Z = 1.96


class _Factor(msgspec.Struct):
    """A step's log factor and half of its interval."""

    gain: float
    half: float
    method: str
    proven: bool = False


class Factors:
    """Finds the factor of each step of a plan.

    Args:
        sets: of the confirmation.
        trials: of the search.
        fits: of the knobs that were switched; a later one is beside a knob of the one before it.
        own_gain: what is believed of the log gain of one state over a second one, and its standard deviation.
        heed_neighbours: names of those whose gain is what other processes take.
        peaks: what is believed of log gains of memory; None: it is not counted.
    """

    def __init__(
        self,
        sets: ConfirmedSets,
        trials: Sequence[Trial],
        fits: Sequence[SwitchFit],
        own_gain: Callable[[Collection[str], Collection[str]], tuple[float, float]],
        heed_neighbours: Collection[str],
        peaks: Gains | None = None,
    ) -> None:
        self._sets = sets
        self._trials = trials
        self._fits = fits
        self._own_gain = own_gain
        self._heed_neighbours = heed_neighbours
        self._peaks = peaks

    def steps(self, confirmation: Standing) -> tuple[PlanStep, ...]:
        """Return the plan's steps with factors that multiply to the total exactly."""
        plan, total = confirmation.plan, confirmation.total.ratio
        assert total is not None, "what was confirmed has a ratio"
        found = [self._factor(plan, at, total) for at in range(len(plan))]
        ratios = _multiplied(found, total)
        return tuple(
            PlanStep(
                name=step.name,
                params=step.params,
                ratio=ratio.ratio,
                low=ratio.low,
                high=ratio.high,
                numerics=step.numerics,
                break_even_steps=break_even(self._trials, step, self._plan_step_s(plan), ratio),
                evidence=self._evidence(plan, at, ratio, factor),
                method=factor.method,
                proven=factor.proven and ratio.low > 1,
                memory_ratio=self._memory(plan, step),
                caution=self._caution(plan, step),
            )
            for at, (step, ratio, factor) in enumerate(zip(plan, ratios, found, strict=True))
        )

    def _factor(self, plan: PlanSteps, at: int, total: Ratio) -> _Factor:
        if len(plan) == 1:
            return _of(total, WHOLE, proven=True)
        labels = [one.label for one in plan]
        step = labels.pop(at)
        mean, deviation = self._own_gain([*labels, step], labels)
        switched = any(step in fit.knobs for fit in self._fits)
        half = _Z * deviation
        return _Factor(mean, half, SWITCHED if switched else ARMS, proven=mean > BEYOND_LUCK * half)

    def _memory(self, plan: PlanSteps, step: Candidate) -> float | None:
        """Return what a step saves of the peak beside the plan's others."""
        if self._peaks is None:
            return None
        labels = {one.label for one in plan}
        return math.exp(self._peaks.gain(labels, labels - {step.label})[0])

    def _plan_step_s(self, plan: PlanSteps) -> list[float]:
        arms = [record.arm(order.plans.index(plan)) for order, record in self._sets.counted(plan)]
        return [arm.step_s for arm in arms if arm is not None]

    def _caution(self, plan: PlanSteps, step: Candidate) -> str:
        """Say what a step leaves to the user, or where it may cost time.

        Threads that sleep at barriers were 7.5 beside others, and 0.57 alone.
        """
        noisy = any(record.beside_others for _, record in self._sets.counted(plan))
        if step.name not in self._heed_neighbours or not noisy:
            return step.caution
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


def _of(ratio: Ratio, method: str, *, proven: bool = False) -> _Factor:
    """A factor; one that a screening picked out of many is seldom proven by what it was picked for."""
    return _Factor(math.log(ratio.ratio), half_width(ratio), method, proven)


def _multiplied(found: Sequence[_Factor], total: Ratio) -> list[Ratio]:
    """What the factors and the total differ by goes to those that are known worst, by their variance."""
    rest = math.log(total.ratio) - math.fsum(factor.gain for factor in found)
    spread = [factor.half**2 for factor in found]
    weights = [one / math.fsum(spread) if math.fsum(spread) else 1 / len(found) for one in spread]
    ratios = []
    for factor, weight in zip(found, weights, strict=True):
        gain = factor.gain + rest * weight
        half = max(factor.half, abs(rest * weight) / _Z)
        ratios.append(ratio_of(gain, half))
    return ratios
