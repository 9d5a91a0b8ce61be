"""The whole way from an observation to a proven plan: what is tried next is one decision, again and again.

`search.policy.next_action` is asked what comes next; `search.search` does it and keeps what it told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hotloop.launch.log_tail import last_words
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import TuneResult
from hotloop.stats.verdict import MIN_MARGIN
from hotloop.tune.confirm.confirmation import Confirmer
from hotloop.tune.confirm.contention_filter import ContentionFilter
from hotloop.tune.confirm.standing import ConfirmedSets
from hotloop.tune.design.experiment import Design
from hotloop.tune.executor import BudgetOver, Executor
from hotloop.tune.result import Found, tune_result
from hotloop.tune.search.arm_comparison import ArmComparison
from hotloop.tune.search.knob_screen import KnobScreen
from hotloop.tune.search.screening import Screening
from hotloop.tune.search.search import Search
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.sets.set_runner import SetRunner
from hotloop.tune.trials.detailed_look import look_s

LOOK_SHARE = 0.08
"""Of the budget, at most, for detailed profiling of the program and its plan: proofs are worth more."""


class Tuner:
    """Tunes one program.

    Args:
        observation: of the program as it is.
        executor: runs the trials.
        ledger: keeps what is finished, and the time there is.
        design: what the experiment is designed from.
        progress: told of what goes on.
        standing: told how far it is.
    """

    def __init__(
        self,
        observation: Observation,
        executor: Executor,
        ledger: Ledger,
        design: Design,
        progress: Callable[[str], None],
        standing: Callable[[str], None] | None = None,
    ) -> None:
        self._observation = observation
        self._executor = executor
        self._ledger = ledger
        runner = SetRunner(executor, ledger, design.costs, design.max_rounds, design.curve_rounds)
        self._runner = runner
        self._heed_neighbours = design.heed_neighbours
        self._counts_memory = design.aim.counts_memory
        pace = ContentionFilter(
            runner.originals,
            design.usual_s,
            observed_busy=design.observed_busy,
            heed_neighbours=design.heed_neighbours,
        )
        self._confirmer = Confirmer(runner, progress, pace, _look_s(observation, ledger), design.aim)
        screen = KnobScreen(
            executor, design.conflicts, design.interactions, typical=design.typical, alike=design.alike
        )
        self._search = Search(
            runner,
            ledger,
            Screening(ledger, screen, design),
            ArmComparison(runner, design.conflicts, design.interactions, design.max_rounds),
            self._confirmer,
            design,
            progress,
            tell_standing=standing,
        )

    @property
    def confirmed(self) -> ConfirmedSets:
        """The sets of proofs."""
        return self._confirmer.sets

    def run(self, candidates: Sequence[Candidate], refused: Sequence[Refusal]) -> TuneResult:
        """Return what was found, and the empty plan where nothing helps.

        After Ctrl-C the best plan proven until then is returned, marked as interrupted; so it is where the program
        itself fails later on.

        Raises:
            HotloopError: the program fails as it is, and nothing was proven before.
        """
        worth, hopeless = (list(candidates), []) if self._counts_memory else _worth_trying(candidates)
        interrupted, failed = False, ""
        try:
            self._search.run(worth)
        except BudgetOver:
            pass  # what there is by now is what there is
        except KeyboardInterrupt:
            interrupted = True
        except HotloopError as error:
            if self._confirmer.proven() is None:
                raise
            failed = last_words(error.message)
        finally:
            self._executor.close()
        found = Found(
            candidates=tuple(worth),
            refused=(*refused, *hopeless),
            runner=self._runner,
            search=self._search,
            confirmer=self._confirmer,
            heed_neighbours=self._heed_neighbours,
            interrupted=interrupted,
            wall_s=self._ledger.budget.spent(),
            budget_s=self._ledger.budget.seconds,
        )
        result = tune_result(self._observation, found)
        gaps = (f"trials ended early: the program failed as it is ({failed})",) if failed else ()
        return msgspec.structs.replace(result, coverage=gaps)


def _look_s(observation: Observation, ledger: Ledger) -> float | None:
    """Return the time for detailed profiling; None: it is too much of the budget."""
    needed_s = look_s(observation.step.median_s) if observation.step is not None else None
    return needed_s if needed_s is not None and needed_s <= LOOK_SHARE * ledger.budget.seconds else None


def _worth_trying(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Refusal]]:
    """What the observation says cannot bring anything is not tried."""
    worth = [one for one in candidates if one.max_gain is None or one.max_gain >= 1 + MIN_MARGIN]
    hopeless = [
        Refusal(one.label, f"could gain {one.max_gain:.3f}x here at most, too little to be measured")
        for one in candidates
        if one not in worth
    ]
    return worth, hopeless
