"""The whole way from an observation to a proven plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import TuneResult
from hotloop.tune.confirm.confirmation import SET_ROUNDS, Confirmer
from hotloop.tune.executor import Executor, PlanSteps
from hotloop.tune.result import Findings, tune_result
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.trials.search import Conflicts, Search
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.noise_floor import FLOOR_ROUNDS, NoiseFloor


class Tuner:
    """Tunes one program.

    Args:
        observation: of the program as it is.
        executor: runs the trials.
        ledger: keeps what is finished, and the time there is.
        conflicts: what cannot be on together.
        progress: told of what goes on.
        max_rounds: rounds until the program ends by itself; None: it does not.
    """

    def __init__(
        self,
        observation: Observation,
        executor: Executor,
        ledger: Ledger,
        *,
        conflicts: Conflicts,
        progress: Callable[[str], None],
        max_rounds: int | None = None,
    ) -> None:
        self._observation = observation
        self._executor = executor
        self._ledger = ledger
        self._conflicts = conflicts
        self._progress = progress
        self._groundwork = NoiseFloor(executor, ledger, progress, max_rounds)
        self._ground: NoiseBaseline | None = None
        self._search: Search | None = None
        self._confirmer: Confirmer | None = None

    def run(self, candidates: Sequence[Candidate], refused: Sequence[Refusal]) -> TuneResult:
        """Return what was found, and the empty plan where nothing helps.

        After Ctrl-C the best plan proven until then is returned, marked as interrupted.
        """
        interrupted = False
        try:
            self._tune(candidates)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._executor.close()
        found = Findings(
            candidates=tuple(candidates),
            refused=tuple(refused),
            ground=self._ground,
            pairs=tuple(self._groundwork.records),
            search=self._search,
            confirmer=self._confirmer,
            interrupted=interrupted,
            wall_s=self._ledger.budget.spent(),
        )
        return tune_result(self._observation, found)

    def _tune(self, candidates: Sequence[Candidate]) -> None:
        self._ground = self._groundwork.measure(candidates)
        self._search = Search(self._executor, self._ledger, self._ground, self._conflicts, self._progress)
        self._search.run(candidates, self._needed_s)
        self._confirmer = Confirmer(self._executor, self._ledger, self._ground, self._progress)
        self._confirmer.run(surest_first(self._search))

    def _needed_s(self, trial_s: float, num_sets: int, speeds: Sequence[float]) -> float:
        """Seconds for a trial and, after it, fresh sets of arms that are so many times as fast as the original."""
        start_s, run_s = self._groundwork.start_s, self._groundwork.run_s
        set_s = sum(start_s + run_s * SET_ROUNDS / FLOOR_ROUNDS / speed for speed in speeds)
        # Before the first trial: what an A/A pair took.
        return num_sets * set_s + (trial_s or 2 * (start_s + run_s))


def surest_first(search: Search) -> PlanSteps:
    """Return the plan with the steps last that trials could not tell from nothing, the smallest at the end.

    Those are the ones that a confirmation may drop, and a plan without its last steps is confirmed already.
    """
    return tuple(
        sorted(search.plan, key=lambda step: -search.ratio(step) if search.doubtful(step) else -math.inf)
    )
