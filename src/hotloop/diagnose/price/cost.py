"""What a thing costs, as a share of the time it is part of, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.diagnose.abstain import Abstain
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase, StepTime
from hotloop.model.ratio import Ratio

MATERIAL = 0.05
"""Share of the step or the loop from which a cost is worth a warning: identical processes were seen to differ by 3.5%
for as long as they lived, so that less cannot be told from chance in one run."""
LEAST = 0.01
"""Less is not reported: a gain below 1% is never called faster by `tune`."""
MAX_SHARE = 0.99
"""Amdahl's bound has no value at 1; what is left of a step is never nothing."""
NO_STEP_LEFT = 1.0 / (1.0 - MAX_SHARE)
"""A gain that leaves nothing of the step: it is no prediction."""
MIDWAY = 0.5
"""The fraction expected to go where nothing better is known: midway between no gain and Amdahl's bound."""


@dataclass(frozen=True)
class Cost:
    """A share of the step, or of the loop with all that happens between steps."""

    share: float
    low: float
    high: float
    step_s: float
    """The mean time per step, which the share is of."""

    @property
    def seconds(self) -> tuple[float, float, float]:
        """The cost per step with its interval: value, lower end, upper end."""
        return self.share * self.step_s, self.low * self.step_s, self.high * self.step_s

    def times(self, fraction: float) -> Cost:
        """Return the cost of a part of it."""
        return Cost(self.share * fraction, self.low * fraction, self.high * fraction, self.step_s)

    def gain(self, expected: float = 1.0, least: float = 0.0, most: float = 1.0) -> Ratio:
        """Return the speed ratio by Amdahl's law when a fix takes away these fractions of the cost."""
        return Ratio(_amdahl(self.share * expected), _amdahl(self.low * least), _amdahl(self.high * most))


def loudness(cost: Cost | None) -> Severity:
    """Return how loud a cost is: a warning is material, and the noise of the steps does not reach it."""
    return Severity.WARNING if cost and cost.share >= MATERIAL and cost.low > LEAST else Severity.INFO


def _amdahl(removed: float) -> float:
    return 1.0 / (1.0 - min(removed, MAX_SHARE))


def measured_step(observation: Observation) -> StepTime:
    """Return the step.

    Raises:
        Abstain: none was measured.
    """
    if observation.step is None:
        raise Abstain("a measured step")
    return observation.step


def phase_share(observation: Observation, *phases: Phase) -> float:
    """Return the phases' share of the step; 0 where none of them occurred."""
    return sum(observation.phases[phase].share for phase in phases if phase in observation.phases)


def evaluated_share(observation: Observation) -> float:
    """Return the share of the step in forwards without gradients, which is part of the forward's; 0: there are none."""
    return observation.evaluated.share if observation.evaluated is not None else 0.0


def phase_cost(observation: Observation, *phases: Phase, bursts: bool = False) -> Cost:
    """Return what phases cost.

    Only the step as a whole has an interval. With r its relative half-width, a share s of it is uncertain by
    s (1 - s) r: the first order of P / (P + R) where P and R differ by r in how they vary. The lower end is not above
    the ratio of the medians: a few long pauses make a large share that most steps do not have.

    Args:
        observation: what was measured.
        phases: which.
        bursts: the time comes in bursts by nature (a queue that fills and empties), so that the median says nothing.

    Raises:
        Abstain: no step was measured.
    """
    step = measured_step(observation)
    share = phase_share(observation, *phases)
    reach = share * (1.0 - share) * _spread(step)
    usual = (
        sum(observation.phases[phase].median_s for phase in phases if phase in observation.phases)
        / step.median_s
    )
    low = share - reach if bursts else min(share - reach, usual)
    return Cost(share, max(0.0, low), min(1.0, share + reach), step.whole_s)


def _spread(step: StepTime) -> float:
    return (step.high_s - step.low_s) / (2 * step.median_s)


def with_backward(observation: Observation, forward: Cost) -> Cost:
    """Return what a part of the forward costs together with its backward pass.

    The backward is taken to be divided as the forward is; a part that keeps no graph has none, so that the lower end is
    the forward's own. Loops over rows had more of the backward than of the forward (measured: 27% of the step where
    this gives 17%, 53% where it gives 37%), which the upper end, half as much again, reaches.
    """
    with_graph = phase_share(observation, Phase.FORWARD) - evaluated_share(observation)
    factor = 1.0 + phase_share(observation, Phase.BACKWARD) / with_graph if with_graph > 0 else 1.0
    share = min(1.0, forward.share * factor)
    return Cost(share, forward.low, max(share, min(1.0, forward.high * factor * 1.5)), forward.step_s)


def between_steps(observation: Observation, spent_s: float) -> Cost:
    """Return what something between steps costs, spread over the steps of the loop.

    Raises:
        Abstain: the loop was not seen.
    """
    step = measured_step(observation)
    whole_s = loop_s(observation)
    if not whole_s:
        raise Abstain("steps in the account of the run")
    num_steps = observation.run.num_steps or max(1.0, steps_s(observation) / step.whole_s)
    share = min(1.0, spent_s / whole_s)
    reach = share * (1.0 - share) * _spread(step)
    return Cost(share, max(0.0, share - reach), min(1.0, share + reach), whole_s / num_steps)


_RECURRING = (
    "epoch_boundary_s",
    "checkpoint_s",
    "evaluation_s",
    "rollout_s",
    "logging_s",
    "irregular_step_s",
)


def steps_s(observation: Observation) -> float:
    """Return the time of all regular steps."""
    return sum(spent for name, spent in observation.run.parts.items() if name.startswith("step_"))


def loop_s(observation: Observation) -> float:
    """Return the time of the loop: steps, and what comes again between them."""
    parts = observation.run.parts
    return steps_s(observation) + sum(parts.get(name, 0.0) for name in _RECURRING)


OFTEN = 3
"""What happens so often within what was seen recurs, whatever an epoch is."""


def recurs(observation: Observation, num: int | None) -> bool:
    """Whether what was seen so many times between steps was seen as often as it happens."""
    whole = observation.epoch_steps is not None or observation.total_steps is not None
    return whole or (num or 0) >= OFTEN
