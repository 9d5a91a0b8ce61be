"""What a proof is spent on where nothing was told from nothing: hints together, or a guess."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Trial
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.arms import Arms
from hotloop.tune.search.batches import SLOW_S
from hotloop.tune.search.belief import Belief
from hotloop.tune.search.confirms import Confirms
from hotloop.tune.search.contest import WORTH_A_LOOK
from hotloop.tune.search.knob_screen import NOT_SURE
from hotloop.tune.search.screening import Screening, hoped
from hotloop.tune.verdict.decision import NO_DIFFERENCE

OPEN = (NO_DIFFERENCE, NOT_SURE)
"""How decisions begin that leave open whether something helps."""


class Fallback:
    """Finds plans that nothing proves yet, for the time that would be left unused.

    Args:
        arms: know the time that is left.
        screening: knows the knobs that it could not tell.
        confirmer: knows what was proven and what was dropped.
        belief: what is believed to help, and what excludes what.
    """

    def __init__(self, arms: Arms, screening: Screening, confirmer: Confirms, belief: Belief) -> None:
        self._arms = arms
        self._screening = screening
        self._confirmer = confirmer
        self._belief = belief

    def hinted(self, trials: Sequence[Trial]) -> PlanSteps:
        """Return all that was estimated to be faster, and could not be told from nothing: together it may be told.

        Of 300 s a reinforcement learner left 135 unspent with two knobs at 1.05 and 1.02, within a tenth; both together
        were 1.10. What takes long to begin is left out beside others: compilation took the time of a GAN's layout.
        """
        latest = {trial.candidate.label: trial for trial in trials}
        hints = [
            (trial.ratio.ratio, trial.candidate)
            for label, trial in latest.items()
            if trial.ratio is not None
            and trial.ratio.ratio > WORTH_A_LOOK
            and trial.decision.startswith(OPEN)
            and label not in self._confirmer.dropped
        ]
        best_first = [one for _, one in sorted(hints, key=lambda hint: -hint[0])]
        quick = [one for one in best_first if (one.one_off_s or 0.0) < SLOW_S]
        return self._belief.joined((), quick or best_first)

    def guess(
        self, untried: Sequence[Candidate], knobs: Sequence[Candidate], trials: Sequence[Trial]
    ) -> PlanSteps:
        """Return what was believed in, else what is expected to help, else the best single candidate.

        Args:
            untried: what there was no time to try, the most promising first.
            knobs: all knobs; those that there was no time to switch are untried, too.
            trials: everything that was tried.
        """
        if self._belief.plan or self._confirmer.proven() is not None:
            return self._belief.plan
        unknown = self._screening.told.unknown
        dropped = self._confirmer.dropped
        told = {*(one.label for one in unknown), *(trial.candidate.label for trial in trials)}
        unswitched = [knob for knob in knobs if knob.label not in told]
        all_untried = [one for one in (*unknown, *unswitched, *untried) if one.label not in dropped]
        cheap = [one for one in all_untried if (one.one_off_s or 0.0) < self._arms.left_s() / 4]
        likely = [one for one in cheap if hoped(one)]
        return self._belief.joined((), likely or cheap[:1])
