"""How the time is spent: screening, arms, confirmation, and again while there is time and something to try."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import Trial
from hotloop.tune.design.experiment import Design
from hotloop.tune.design.patterns import exclude
from hotloop.tune.design.switchable import Switchables
from hotloop.tune.executor import PlanSteps, SetOrder
from hotloop.tune.search.along import Along
from hotloop.tune.search.arms import Arms
from hotloop.tune.search.batches import CONTEST_ROUNDS, Batches, expected_together
from hotloop.tune.search.belief import NO_TIME, UNPROVEN, Belief
from hotloop.tune.search.confirms import Confirms
from hotloop.tune.search.contest import Contest
from hotloop.tune.search.fallback import Fallback
from hotloop.tune.search.screening import MOVES_MUCH, Screening, hoped
from hotloop.tune.search.stand_ins import stand_ins, waiting
from hotloop.tune.search.switching import MOVES, Switching
from hotloop.tune.search.variant_order import in_turns
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.session.standing import standing
from hotloop.tune.verdict.decision import ACCEPTED

MAX_MOVERS = 2
"""So many of what is expected to move the bottleneck are tried before knobs are switched."""
MOVER_SHARE = 0.2
"""Of the budget: on a small convolutional net compilation alone took 95 s of 240, before anything else was tried."""
LARGE = 1.15
"""Gain that is proven before what is expected to bring less is tried beside it."""
MOVER_WORTH = 1.1
"""A mover below it has not moved anything; how far below does not matter to what comes next."""
WAITING = "openmp_wait_policy"
"""It is what screening beside a neighbour does itself."""


class Search:
    """Finds the optimizations that help together.

    Args:
        arms: runs the sets.
        ledger: knows the budget.
        screening: switches knobs.
        contest: tries what needs a process of its own.
        confirmer: proves plans.
        design: what the experiment is designed from.
        switchable: which candidates are switched in a running program.
        tell_standing: told how far the search is.
    """

    def __init__(
        self,
        arms: Arms,
        ledger: Ledger,
        screening: Screening,
        contest: Contest,
        confirmer: Confirms,
        design: Design,
        switchable: Switchables,
        tell_standing: Callable[[str], None] | None = None,
    ) -> None:
        self._tell_standing = tell_standing
        self._arms = arms
        self.screening = screening
        self._contest = contest
        self._confirmer = confirmer
        confirmer.instead = self._with_stand_ins
        self._design = design
        self._switchable = switchable
        self.belief = Belief(design.conflicts)
        self._along = Along(ledger, screening, confirmer, design)
        self._batches = Batches(arms, ledger, screening, contest, design.conflicts)
        self._switching = Switching(
            arms, screening, contest, self._batches, self.belief, design, switchable, self._take
        )
        self._fallback = Fallback(arms, screening, confirmer, self.belief)
        self._assumed: list[Candidate] = []
        """Passive waiting, which nothing has shown to help: screening waits so itself."""
        self._num_sets = 0
        """Of arms, so far."""
        self._candidates: Sequence[Candidate] = ()

    @property
    def trials(self) -> list[Trial]:
        """Everything that was tried."""
        return self._switching.trials

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Try the candidates and confirm what helps, until the time is over or nothing is left to try."""
        if not candidates:
            return
        self._candidates = candidates
        self.belief.refuse(candidates, NO_TIME)
        later = {one.name: one for one in waiting(candidates, self._design.stands_in_for)}
        self.belief.refused |= later
        knobs = [one for one in candidates if self._switchable(one)]
        todo = in_turns([one for one in candidates if not self._switchable(one) and one.label not in later])
        if self._arms.room(3) < 3:
            rounds = min(CONTEST_ROUNDS, self._design.max_rounds or CONTEST_ROUNDS)
            self._arms.measure_floor([tuple(candidates)], rounds)
        self._movers_first(todo, knobs)
        # Of variants that help another may help more once knobs are on.
        helped = {trial.candidate.label for trial in self._contest.trials if trial.decision == ACCEPTED}
        again = [one for one in todo if one.label in helped and one not in self.belief.plan]
        todo = [*again, *(one for one in todo if self.belief.refused[one.label].reason == NO_TIME)]
        self._switching.screen(knobs)
        self._in_rounds(todo, knobs)
        self._look_again()

    def _movers_first(self, todo: Sequence[Candidate], knobs: Sequence[Candidate]) -> None:
        """Try what is expected to move the bottleneck before any knob is switched."""
        if not knobs:
            return
        movers = [one for one in todo if one.name != WAITING and one.expected >= MOVES][:MAX_MOVERS]
        rivals = self._rival(movers, knobs)
        batch = self._next([*movers, *rivals], MOVER_SHARE)
        knobs_first = any(rival not in batch and rival.expected >= movers[0].expected for rival in rivals)
        if batch and not knobs_first:
            self._try(batch, worth=MOVER_WORTH, share=MOVER_SHARE)

    def _rival(self, movers: Sequence[Candidate], knobs: Sequence[Candidate]) -> list[Candidate]:
        """Return the knob of which most is expected among those that cannot be on beside a mover, if it is as much.

        It would not be switched any more once a mover is believed in: samples kept in memory (1.87) gave way to loader
        workers (1.26 times as fast) untried.
        """
        excluded = [
            knob
            for knob in knobs
            if knob.expected >= MOVES and any(exclude(knob, one, self._design.conflicts) for one in movers)
        ]
        return sorted(excluded, key=lambda knob: -knob.expected)[:1]

    def _next(self, todo: Sequence[Candidate], share: float | None = None) -> list[Candidate]:
        return self._batches.next(todo, self._num_sets, self.belief.plan, share)

    def _in_rounds(self, todo: list[Candidate], knobs: Sequence[Candidate]) -> None:
        """Try as much as fits, confirm what is believed in by then, and so on with the rest."""
        refuted = False
        while True:
            todo = self._without_waiting([*self._switching.separated(), *todo])
            batch = self._next(todo)
            if not batch and not self._believed_in():
                # Nothing to prove, so no time to keep for a proof: a single set shows what is likely.
                batch = self._batches.affordable(todo, self._num_sets)
            if self._is_proven_first(batch):
                self.belief.plan = self._along.joined(self.belief.plan, todo)
                self._confirmer.prove(self.belief.plan)
                self._take_what_is_left()
                todo = self._rest(todo)
                self._say_standing()
                batch = self._next(todo)
            todo = [one for one in todo if one not in batch]
            if batch:
                fixed = self._switching.fixed()
                self._try(batch)
                if self._switching.moved(fixed):
                    self._switching.screen(knobs)
            elif todo or self._num_sets == 0 or refuted:
                self.belief.plan = self._fallback.guess(todo, knobs, self.trials)
            todo = self._without_waiting(todo)
            self._switching.as_it_runs(knobs)
            self._say_standing()
            refuted = self._confirm(todo, self._batches.reserve_s() if todo and batch else 0.0)
            todo = self._rest(todo)
            self._say_standing()
            todo = todo or [one for one in self._contest.undecided() if one not in self.belief.plan]
            untold = [] if todo else self._switching.untold(knobs)
            todo = [one for one in (*todo, *untold) if one.label not in self._confirmer.dropped]
            if not self._switching.as_it_runs(knobs) and not refuted and (not todo or not (batch or untold)):
                break

    def _look_again(self) -> None:
        """Where nothing is proven use the time that is left for what was not told from nothing."""
        if self._confirmer.proven() is None:
            self._set_aside(at_last=True)
            self._confirm((), 0.0)
        while self._confirmer.proven() is None and self._believes_another():
            self._confirm((), 0.0)
        if self._confirmer.proven() is None:
            self.belief.plan = self.belief.plan or self._fallback.hinted(self.trials)
            self._confirm((), 0.0)
            self._confirmer.exhaust()
            self._say_standing()

    def _believes_another(self) -> bool:
        """Measure again, in the time beyond a proof, until another plan is believed in; return whether one is."""
        believed = self.belief.plan
        dropped = {*self._confirmer.dropped, *(step.label for step in self.belief.aside)}
        while self.belief.plan == believed:
            told = self.screening.again(
                dropped, passive=self._switching.passive, reserve_s=self._batches.reserve_s()
            )
            if told is not None:
                plan = told.plan or self.screening.leaning(())
                self.belief.plan = tuple(step for step in plan if step.label not in dropped) or believed
                self._take(told.trials)
            if self.belief.plan != believed:
                break
            open_ = [one for one in self._contest.open() if one.label not in dropped and one not in believed]
            batch = self._next(open_)
            if batch:
                self._try(batch)
            elif told is None:
                return False
        return True

    def _is_proven_first(self, batch: Sequence[Candidate]) -> bool:
        """Whether what is believed in has gained more than is expected of what would be tried next.

        Beside neighbours starts and blocks take several times as long as they were expected to, and the proof would
        have what is left: of 300 s a program that waited for its data (1.3) was given one set.
        """
        if not batch or not self.belief.plan or self._confirmer.proven() is not None:
            return False
        gains = {one.candidate.label: one.ratio.ratio for one in self.trials if one.ratio is not None}
        gained = math.prod(gains.get(step.label, 1.0) for step in self.belief.plan)
        quiet = not (self._arms.noisy() or self._design.observed_busy)
        if quiet and gained < MOVES_MUCH and 2 * self._batches.reserve_s() > self._arms.left_s():
            return False  # too little would be left for the rest, and what sets will take is known
        new = [one for one in batch if not self.belief.excluded_by(self.belief.plan, one)]
        return gained >= LARGE and gained > expected_together(new, self._design.conflicts)

    def _confirm(self, untried: Sequence[Candidate], until_left_s: float) -> bool:
        """Confirm what is believed in; return whether it was a guess, and wrong, so that another one may be made."""
        without_aside = self.belief.without_aside
        self.belief.plan = self._along.joined(without_aside(self.belief.plan), without_aside(untried))
        tried = {trial.candidate.label for trial in self.trials}
        guessed = bool(self.belief.plan) and not any(step.label in tried for step in self.belief.plan)
        self._confirmer.run(self.belief.plan, until_left_s, guessed=guessed)
        self._take_what_is_left()
        return guessed and not self.belief.plan

    def _set_aside(self, *, at_last: bool = False) -> None:
        """Go on without what changes the numbers of a plan of which nothing tells if it learns the same.

        It stays what is likely. The rest can be proven: beside half precision in a DCGAN an allocator (1.08) was not.

        Args:
            at_last: there is no time for more runs with rounding noise, which might tell.
        """
        if self._confirmer.undecided(self.belief.plan) and (
            at_last or not self._arms.wants_perturbed(unsettled=True)
        ):
            self.belief.set_aside_loose()

    def _take_what_is_left(self) -> None:
        heeding, reason = self._confirmer.beside(self.belief.plan)
        self.belief.set_aside(heeding, reason)
        self.belief.plan, idle = self._along.left(self.belief.plan)
        self.belief.refused |= {refusal.name: refusal for refusal in idle}
        self._set_aside()

    def _rest(self, todo: Sequence[Candidate]) -> list[Candidate]:
        """Return what was not proven along with something else."""
        return [one for one in todo if one not in self._along.untried and one not in self.belief.plan]

    def _with_stand_ins(self, left: PlanSteps, gone: Sequence[Refusal]) -> PlanSteps:
        """Return what is left of a plan with what takes the place of what did not learn the same.

        That is believed in from now on: the confirmer goes on with it at once, and asks here for what to go on with.
        """
        found = stand_ins(self._candidates, gone, self._design.stands_in_for)
        found = [
            one for one in found if one.label not in self._confirmer.dropped and one not in self.belief.plan
        ]
        if not found:
            return left
        self.belief.refuse(found, UNPROVEN)
        kept = tuple(step for step in self.belief.plan if step.label not in self._confirmer.dropped)
        self.belief.plan = self.belief.joined(kept, found)
        return self.belief.joined(left, found)

    def _without_waiting(self, todo: list[Candidate]) -> list[Candidate]:
        """Where screening waits passively, that cannot be screened: it is part of the plan, and confirmed with it."""
        if self._switching.passive:
            assumed = [one for one in todo if one.name == WAITING]
            self._assumed += assumed
            self.belief.plan = self.belief.joined(self.belief.plan, assumed)
            return [one for one in todo if one not in assumed]
        again, self._assumed = self._assumed, []
        self.belief.plan = tuple(step for step in self.belief.plan if step not in again)
        return [*todo, *(one for one in again if one.label not in self._confirmer.dropped)]

    def _try(self, batch: Sequence[Candidate], worth: float = 1.0, share: float | None = None) -> None:
        base = self._batches.base(self.belief.plan)
        plans = self._contest.arm_plans(base, batch)
        originals, perturbed = self._arms.first_originals(plans, undecided=self._contest.wants_perturbed)
        room = self._arms.room(len(originals) + len(plans)) - len(originals)
        until_left_s = self._batches.until_left_s(batch, share)
        arms = (*originals, *plans[: max(1, room)])
        rounds = self._batches.telling_rounds(len(arms))
        order = SetOrder(
            plans=arms,
            max_rounds=min(rounds, self._design.max_rounds or rounds),
            perturbed=perturbed,
            passive=self._switching.passive,
            keep_s=self._batches.reserve_s(),
        )
        before = len(self._contest.trials)
        best = self._contest.run(self._num_sets, base, batch, order, until_left_s, worth)
        self._num_sets += 1
        self.belief.plan = best if base == self.belief.plan else self.belief.joined(self.belief.plan, best)
        trials = self._contest.trials[before:]
        self._take(trials)
        gone = [
            Refusal(one.candidate.label, one.decision)
            for one in trials
            if one.ratio is not None and one.ratio.low > 1
        ]
        self.belief.plan = self._with_stand_ins(self.belief.plan, gone)

    def _take(self, trials: Sequence[Trial]) -> None:
        self.belief.take(trials)
        self._say_standing()

    def _say_standing(self) -> None:
        if self._tell_standing is not None:
            proven, promising = self._confirmer.proven(), self._confirmer.promising()
            line = standing(
                self.belief.plan,
                len(self.trials),
                promising=promising.ratio if promising is not None else None,
                proven=proven.ratio if proven is not None else None,
            )
            self._tell_standing(line)

    def _believed_in(self) -> bool:
        """Whether there is something that a proof would be worth its time."""
        return (
            bool(self.belief.plan)
            or self._confirmer.proven() is not None
            or any(
                hoped(one) for one in self.screening.told.unknown if one.label not in self._confirmer.dropped
            )
        )
