"""When knobs are switched, and beside what: beside what needs a process of its own and moves the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Trial
from hotloop.tune.design.experiment import Design
from hotloop.tune.design.switchable import Switchables
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.arms import Arms
from hotloop.tune.search.batches import LEAST_ROUNDS, Batches
from hotloop.tune.search.belief import NO_TIME, Belief
from hotloop.tune.search.contest import Contest
from hotloop.tune.search.screening import MOVES_MUCH, Screening, hoped
from hotloop.tune.verdict.decision import ACCEPTED

MOVES = 1.2
"""Expected, or measured, gain of what needs a process of its own from which it holds the program back elsewhere: knobs
are switched beside it, because what they are worth alone says little then."""


class Switching:
    """Switches knobs, and keeps what is believed of them.

    Args:
        arms: knows the neighbours.
        screening: switches knobs.
        contest: knows what arms have shown.
        batches: knows the time that a proof needs.
        belief: told what helps.
        design: what the experiment is designed from.
        switchable: which candidates are switched in a running program.
        take: told of trials.
    """

    def __init__(
        self,
        arms: Arms,
        screening: Screening,
        contest: Contest,
        batches: Batches,
        belief: Belief,
        design: Design,
        switchable: Switchables,
        take: Callable[[Sequence[Trial]], None],
    ) -> None:
        self._arms = arms
        self._screening = screening
        self._contest = contest
        self._batches = batches
        self._belief = belief
        self._design = design
        self._switchable = switchable
        self._take = take
        self._kept_out: list[Candidate] = []
        """Knobs that cannot be on beside what is believed in."""

    @property
    def passive(self) -> bool:
        """Whether screening waits passively at barriers, as neighbours ask for by now.

        A step of many short parallel regions takes longer so (an LSTM's 5 ms were 25): beside a neighbour it was
        observed with what that costs, and is not to take longer still.
        """
        wanted = self._arms.noisy() if self._arms.contentions else self._design.busy
        return wanted and not self._arms.held_up_by_waiting(self._design.observed_s)

    @property
    def trials(self) -> list[Trial]:
        """Everything that was tried, knobs first."""
        return [*self._screening.trials, *self._contest.trials]

    def screen(self, knobs: Sequence[Candidate]) -> None:
        """Switch knobs beside what needs a process of its own and is believed in, then beside what moved much."""
        base = (*self.fixed(), *self._moved_much(knobs))
        knobs = [knob for knob in knobs if self._switchable(knob) and knob not in base]
        self._kept_out = [knob for knob in knobs if self._belief.excluded_by(base, knob)]
        for knob in self._kept_out:
            self._belief.refuse([knob], self._belief.displaced(knob))
        if self._beside(base, [knob for knob in knobs if knob not in self._kept_out], until_strong=True):
            strong, others = self._screening.strong_and_others()
            if strong:
                self._beside((*base, *strong), others)

    def as_it_runs(self, knobs: Sequence[Candidate]) -> bool:
        """Switch knobs again that were switched while all waited passively, once the neighbours have left.

        Threads that wait passively cost more, so one thread looked better than it is: on a small GPT 1.05 for 0.7.
        """
        if not self._screening.passively or self.passive:
            return False
        num = len(self._screening.trials)
        self.screen(knobs)
        self._screening.passively = False
        return len(self._screening.trials) > num

    def separated(self) -> list[Candidate]:
        """Return knobs that could not be switched and may help where they are on from the start of a process.

        Those that did not act in one that ran already (samples kept before workers fork would be theirs), those that
        what is believed in has kept out untried, and those that could not be told from what they gave way to.
        """
        tried = {trial.candidate.label for trial in self.trials}
        kept_out = [one for one in self._kept_out if one.label not in tried and one.expected >= MOVES]
        acting = [one for one in self._screening.told.from_start if hoped(one)]
        rivals = self._screening.rivals(MOVES)
        return self._separate([*kept_out, *acting, *rivals])

    def untold(self, knobs: Sequence[Candidate]) -> list[Candidate]:
        """Return those of which switching told nothing, to be on from the start of a process.

        A program that ends after 500 short steps had two of four knobs untried, and most of its ten minutes unspent.
        """
        tried = (trial.candidate for trial in self.trials)
        done = (*self._kept_out, *self._belief.plan, *self._belief.aside, *tried)
        labels = {one.label for one in done}
        return self._separate([knob for knob in knobs if knob.label not in labels])

    def _separate(self, knobs: Sequence[Candidate]) -> list[Candidate]:
        """Give knobs processes of their own; return those that had none until now."""
        found = [one for one in {one.label: one for one in knobs}.values() if self._switchable(one)]
        for knob in found:
            self._switchable.separate(knob)
            self._belief.refuse([knob], NO_TIME)
        return found

    def fixed(self) -> PlanSteps:
        """The plan's steps that need a process of their own."""
        return tuple(step for step in self._belief.plan if not self._switchable(step))

    def moved(self, before: PlanSteps) -> bool:
        """Whether what was added since holds the program back elsewhere than when knobs were switched."""
        added = {step.label for step in self.fixed() if step not in before}
        gains = [
            trial.ratio.ratio
            for trial in self._contest.trials
            if trial.ratio is not None and trial.decision == ACCEPTED and trial.candidate.label in added
        ]
        return math.prod(gains) >= MOVES

    def _moved_much(self, knobs: Sequence[Candidate]) -> PlanSteps:
        """Return knobs of the plan that arms have shown to hold the program back elsewhere: they need no switching.

        Samples kept in memory (2.6 in arms) were switched again, and the others beside them after that: 4 of 10 min.
        """
        lows = {
            trial.candidate.label: trial.ratio.low
            for trial in self._contest.trials
            if trial.ratio is not None and trial.decision == ACCEPTED
        }
        return tuple(
            step for step in self._belief.plan if step in knobs and lows.get(step.label, 0) >= MOVES_MUCH
        )

    def _beside(self, base: PlanSteps, knobs: Sequence[Candidate], *, until_strong: bool = False) -> bool:
        """Switch knobs beside what is on all the time; return whether anything was told."""
        if not knobs:
            return False
        # A proof of something that nothing was measured of is worth less than knowing what to prove.
        begun = bool(self._belief.plan or self.trials)
        reserve_s = self._batches.reserve_s()
        if not begun:
            reserve_s = min(reserve_s, self._arms.costs.set_s(2, LEAST_ROUNDS))
        told = self._screening.beside(
            base, knobs, passive=self.passive, reserve_s=reserve_s, until_strong=until_strong
        )
        if told is not None:
            self._belief.plan = (*base, *(told.plan or self._screening.leaning(())))
            self._take(told.trials)
            self._belief.plan = self._belief.joined(self._belief.plan, self._screening.hopeful(told.unknown))
        elif not self._screening.trials:
            self._belief.plan = self._belief.joined(self._belief.plan, self._screening.hopeful(knobs))
        return told is not None
