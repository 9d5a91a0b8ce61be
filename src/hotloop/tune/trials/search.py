"""The search: candidates one after another against the plan so far; what helps stays on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import Trial
from hotloop.stats.verdict import margin
from hotloop.tune.executor import Executor, PlanSteps
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.trials.screening import Screening
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.decision import ACCEPTED, NO_DIFFERENCE

NO_TIME = "not tried: too little time was left to try and confirm it (--budget)"
FIRST_RESERVE, SECOND_RESERVE = 3, 6
"""Sets of a confirmation that time is kept for: the fewest there are, and in the second round all."""
Needed = Callable[[float, int, Sequence[float]], float]
"""Seconds for a trial that usually takes so long and, after it, so many sets of arms that are so many times as fast
as the original."""
Conflicts = Mapping[str, frozenset[str]]
"""Names of optimizations, and those that each cannot be on together with."""


class Search:
    """Finds the optimizations that help together.

    Args:
        executor: runs the trials.
        ledger: keeps them, and the time there is.
        ground: what they are judged by.
        conflicts: what cannot be on together.
        progress: told of what is tried.
    """

    def __init__(
        self,
        executor: Executor,
        ledger: Ledger,
        ground: NoiseBaseline,
        conflicts: Conflicts,
        progress: Callable[[str], None],
    ) -> None:
        self._ledger = ledger
        self._ground = ground
        self._conflicts = conflicts
        self._screening = Screening(executor, ground, ledger.budget, progress)
        self._progress = progress
        self.plan: PlanSteps = ()
        self.trials: list[Trial] = []
        self.refused: dict[str, Refusal] = {}

    def run(self, candidates: Sequence[Candidate], needed_s: Needed) -> None:
        """Try the candidates in order, as far as the budget goes; then again what others may have unlocked.

        Args:
            candidates: the most promising first.
            needed_s: seconds that have to be left for one more trial.
        """
        self._round(in_turns(candidates), needed_s, FIRST_RESERVE)
        again = [candidate for candidate in candidates if self._worth_another_try(candidate)]
        self._round(again, needed_s, SECOND_RESERVE)

    def _round(self, candidates: Sequence[Candidate], needed_s: Needed, num_sets: int) -> None:
        for number, candidate in enumerate(candidates):
            if candidate.max_gain is not None and candidate.max_gain < 1 + margin(self._ground.floor):
                self._refuse(
                    candidate, f"at most {candidate.max_gain:.3f}x is to be had here, within the floor"
                )
                continue
            key = self._key(candidate)
            needed = needed_s(self._typical_s(), num_sets, self._speeds())
            if not self._ledger.knows(key) and self._ledger.budget.left() < needed:
                self.refused.setdefault(candidate.label, Refusal(candidate.label, NO_TIME))
                continue
            self._progress(f"{number + 1}/{len(candidates)} {candidate.label}")
            self._take(self._trial(candidate, key))

    def _worth_another_try(self, candidate: Candidate) -> bool:
        """Whether it made no difference beside a plan without what came later: layouts help low precision."""
        last = next((trial for trial in reversed(self.trials) if trial.candidate == candidate), None)
        if last is None or not last.decision.startswith(NO_DIFFERENCE):
            return False
        if any(step.name == candidate.name for step in self.plan):
            return False
        return any(step not in last.incumbent and not self.doubtful(step) for step in self.plan)

    def doubtful(self, step: Candidate) -> bool:
        """Whether a step of the plan may, as far as its trial can tell, be nothing."""
        trial = next(trial for trial in reversed(self.trials) if trial.candidate == step)
        return trial.ratio is None or trial.ratio.low <= 1

    def ratio(self, step: Candidate) -> float:
        """The estimate of a step's trial."""
        trial = next(trial for trial in reversed(self.trials) if trial.candidate == step)
        return trial.ratio.ratio if trial.ratio else 1.0

    def _trial(self, candidate: Candidate, key: str) -> Trial:
        after = with_candidate(self.plan, candidate, self._conflicts)
        return self._ledger.once(key, Trial, lambda: self._screening.trial(key, candidate, self.plan, after))

    def _take(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.decision != ACCEPTED:
            self._refuse(trial.candidate, trial.decision)
            return
        after = with_candidate(self.plan, trial.candidate, self._conflicts)
        for step in self.plan:
            if step not in after:
                self._refuse(step, f"{trial.candidate.label} in its place was faster")
        self.refused.pop(trial.candidate.label, None)
        self.plan = after

    def _refuse(self, candidate: Candidate, reason: str) -> None:
        self.refused[candidate.label] = Refusal(candidate.label, reason)

    def _key(self, candidate: Candidate) -> str:
        return f"trial|{'+'.join(step.label for step in self.plan)}|{candidate.label}"

    def _speeds(self) -> list[float]:
        """How many times as fast each arm of a confirmation is that has one step more than the plan."""
        speeds = [1.0]
        for step in self.plan:
            speeds.append(speeds[-1] * max(1.0, self.ratio(step)))
        return [*speeds, speeds[-1]]

    def _typical_s(self) -> float:
        spent = sorted(trial.seconds for trial in self.trials)
        return spent[len(spent) // 2] if spent else 0.0


def in_turns(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first candidate of every name, then the second ones: what is different is worth more than variants."""
    seen: Counter[str] = Counter()
    turns = []
    for candidate in candidates:
        turns.append(seen[candidate.name])
        seen[candidate.name] += 1
    return [
        candidate for _, candidate in sorted(zip(turns, candidates, strict=True), key=lambda pair: pair[0])
    ]


def with_candidate(plan: PlanSteps, candidate: Candidate, conflicts: Conflicts) -> PlanSteps:
    """Return the plan with a candidate on, in place of its own name and of what it cannot be beside."""
    clash = conflicts.get(candidate.name, frozenset())
    kept = (step for step in plan if step.name != candidate.name and step.name not in clash)
    return (*kept, candidate)
