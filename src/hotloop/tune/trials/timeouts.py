"""How long an arm may take before it counts as hung."""

from __future__ import annotations

from hotloop.tune.executor import PlanSteps

MIN_S = 60.0
STEP_FACTOR = 30.0
"""A block may take so many times as long as expected: busy neighbours were seen to cost a factor of 25."""
COMPILE_FACTOR = 10.0
"""Of what compilation is expected to take, or was seen to take: models differ by as much, and caches are cold."""


class Timeouts:
    """Timeouts with the arms of one program.

    Args:
        startup_s: from the original's start to its first step.
        step_s: a step of the original.
    """

    def __init__(self, startup_s: float, step_s: float) -> None:
        self._startup_s = startup_s
        self._step_s = step_s
        self._warm_s: dict[str, float] = {}
        """Seconds that the warm-up of a plan with this step took, at most."""

    def warm_up_s(self, plan: PlanSteps, num_steps: int) -> float:
        """Return how long the start and the first steps of a plan may take."""
        usual = max(2 * MIN_S, 5 * self._startup_s) + STEP_FACTOR * num_steps * self._step_s
        return usual + COMPILE_FACTOR * self._one_off_s(plan)

    def expected_s(self, plan: PlanSteps, num_steps: int) -> float:
        """Return how long the start and the first steps of a plan are expected to take."""
        return self._startup_s + num_steps * self._step_s + self._one_off_s(plan)

    def _one_off_s(self, plan: PlanSteps) -> float:
        return sum(max(step.one_off_s or 0.0, self._warm_s.get(step.label, 0.0)) for step in plan)

    def warmed(self, plan: PlanSteps, seconds: float) -> None:
        """Learn from a warm-up that ended: what a step of the plan costs once is known by then."""
        for step in plan:
            if step.one_off_s:
                self._warm_s[step.label] = max(seconds, self._warm_s.get(step.label, 0.0))

    def block_s(self, num_steps: int) -> float:
        """Return how long a block may take."""
        return max(MIN_S, STEP_FACTOR * num_steps * self._step_s)
