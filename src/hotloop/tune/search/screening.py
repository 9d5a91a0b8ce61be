"""When knobs are switched, beside what, and what is known of them by then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.model.quantities import counted
from hotloop.model.tuning import Switched, Trial
from hotloop.probe.windows.knob_blocks import HOPELESS
from hotloop.stats.switching import SwitchFit
from hotloop.tune.design.experiment import Design
from hotloop.tune.design.patterns import exclude
from hotloop.tune.executor import PlanSteps, SwitchRecord
from hotloop.tune.search.arms import Arms
from hotloop.tune.search.knob_screen import KnobScreen, Screened, switch_order
from hotloop.tune.search.predicted_plan import leaning
from hotloop.tune.search.variant_order import in_turns
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.verdict.decision import ACCEPTED

SCREEN_SHARE = 0.2
"""Of the budget, for all knobs together."""
EXPECTED = 1.08
"""Prior from which a candidate that nothing is known of is part of the predicted plan."""
MAY_HELP = 1.02
"""Upper end of a knob's interval from which it is switched again where time is left: a proof sees no less."""
ALIKE = 1.15
"""What switching does to two knobs may differ by so much: one fills a cache while it is on, the other does not."""
MOVES_MUCH = 1.5
"""Gain of a knob from which the program is held back elsewhere with it on: the others are switched again beside it,
because half of the patterns, in which it is off, have told little of them."""


class Screening:
    """Switches knobs, and keeps what that told.

    Args:
        arms: knows what starts take, and the time left.
        ledger: keeps the records.
        screen: switches.
        design: what the experiment is designed from.
        progress: told of what is switched.
    """

    def __init__(
        self,
        arms: Arms,
        ledger: Ledger,
        screen: KnobScreen,
        design: Design,
        progress: Callable[[str], None],
    ) -> None:
        self._arms = arms
        self._ledger = ledger
        self._screen = screen
        self._design = design
        self._progress = progress
        self.told = Screened()
        """By the last process in which anything was learned."""
        self.fits: tuple[SwitchFit, ...] = ()
        """Of the processes that tell of the plan: the first one, and the one beside a knob of it."""
        self.passively = False
        """All threads waited passively then."""
        self.trials: list[Trial] = []
        self._base: PlanSteps = ()
        """What was on all the time in the last process in which anything was learned."""
        self._num_again = 0
        self.one_off_s: dict[str, float] = {}
        """What the first steps with a knob took beyond later ones, by label."""

    def beside(
        self,
        base: PlanSteps,
        knobs: Sequence[Candidate],
        *,
        passive: bool,
        reserve_s: float,
        until_strong: bool = False,
    ) -> Screened | None:
        """Switch knobs in a process that has the rest on all the time; None: there was no time, or nothing was told.

        Where time is short fewer are switched.

        Args:
            base: what is on all the time.
            knobs: what is switched.
            passive: whether threads wait passively.
            reserve_s: of the time left, what a proof needs.
            until_strong: a knob that moves much ends it: the others are switched again beside that.
        """
        key = _key(base, passive=passive)
        limit_s = self._limit_s(reserve_s)
        chosen = self._chosen(key, base, knobs, limit_s)
        left_out = [knob for knob in knobs if knob not in chosen]
        if not chosen:
            if not self.trials:
                self.told = Screened(unknown=tuple(left_out))
            return None

        def moved_much(told: Screened) -> bool:
            strong, others = self.strong_and_others(told)
            rest_s = self._limit_s(reserve_s)
            return bool(strong) and bool(self._affordable((*base, *strong), others, rest_s))

        ends = moved_much if until_strong else None
        told = self._switched(key, base, chosen, limit_s, passive=passive, ends=ends)
        self.passively = passive
        tried = {trial.candidate.label for trial in self.trials}
        again = [knob for knob in left_out if knob.label in tried]
        return self._learned(base, msgspec.structs.replace(told, unknown=(*told.unknown, *again)))

    def again(self, dropped: Collection[str], *, passive: bool, reserve_s: float) -> Screened | None:
        """Switch once more what may help, beside nothing as before; None: there is no such knob, or no time.

        Of 300 s a graph network's session left 123 unspent, with nothing known to 5%.

        Args:
            dropped: labels of what did not hold.
            passive: whether threads wait passively: what was switched otherwise cannot be told together.
            reserve_s: of the time left, what a proof needs.
        """
        open_ = [
            trial.candidate
            for trial in self.told.trials
            if trial.ratio is not None
            and trial.ratio.high > MAY_HELP
            and trial.candidate.label not in dropped
        ]
        if self._base or not self.fits or passive != self.passively:
            return None
        self._num_again += 1
        key = f"{_key((), passive=passive)}|again {self._num_again}"
        limit_s = self._limit_s(reserve_s)
        if not self._ledger.knows(f"knobs|{key}") and not self._affordable((), open_, limit_s):
            return None  # nothing is kept of that: a resumed session has new time
        knobs = self._chosen(key, (), open_, limit_s)
        told = self._switched(key, (), knobs, limit_s, passive=passive, known=self.fits[-1])
        if told.fit is None:
            return None
        self.fits = (*self.fits[:-1], told.fit)
        self.trials += told.trials
        self.told = msgspec.structs.replace(told, unknown=self.told.unknown, from_start=self.told.from_start)
        return self.told

    def _limit_s(self, reserve_s: float) -> float:
        return min(SCREEN_SHARE * self._ledger.budget.seconds, self._arms.left_s() - reserve_s)

    def _chosen(
        self, key: str, base: PlanSteps, knobs: Sequence[Candidate], limit_s: float
    ) -> list[Candidate]:
        """Return the knobs that there is time for, as it was when they were chosen."""
        labels = self._ledger.once(
            f"knobs|{key}", list[str], lambda: [one.label for one in self._affordable(base, knobs, limit_s)]
        )
        return [knob for knob in knobs if knob.label in labels]

    def _switched(
        self,
        key: str,
        base: PlanSteps,
        knobs: Sequence[Candidate],
        limit_s: float,
        *,
        passive: bool,
        known: SwitchFit | None = None,
        ends: Callable[[Screened], bool] | None = None,
    ) -> Screened:
        """Switch knobs in a process; return what it told, with what is known before."""
        beside = f" beside {', '.join(step.label for step in base)}" if base else ""
        named = ", ".join(knob.label for knob in knobs)
        self._progress(f"switching {counted(len(knobs), 'change')} on and off{beside}: {named}")
        order = switch_order(
            knobs,
            self._design.conflicts,
            limit_s,
            base=base,
            passive=passive,
            buffered=self._design.buffered(base),
        )
        record = self._ledger.once(key, SwitchRecord, lambda: self._screen.run(order, known, ends))
        return self._screen.read(record, order, known)

    def _affordable(self, base: PlanSteps, knobs: Sequence[Candidate], limit_s: float) -> Sequence[Candidate]:
        """Return as many knobs as so many seconds tell something of: the most promising of each name first."""
        ranked = in_turns(knobs)
        return next(
            (
                ranked[:num]
                for num in range(len(ranked), 0, -1)
                if self._least_s(base, ranked[:num]) <= limit_s
            ),
            (),
        )

    def _least_s(self, base: PlanSteps, knobs: Sequence[Candidate]) -> float:
        """Return the seconds below which nothing is told."""
        one_off_s = sum(self.one_off_s.get(step.label, 0.0) for step in base)
        return self._arms.costs.start_s(1) + one_off_s + (8 + 4 * len(knobs)) * self._design.hold_s

    def _learned(self, base: PlanSteps, told: Screened) -> Screened | None:
        """Keep what was told; beside a knob what was told before stays where nothing was."""
        goes_on = any(knob.label in fit.knobs for fit in self.fits for knob in base)
        if goes_on and told.fit is None:
            return None
        self._base = base
        before = self.told.from_start if goes_on else ()
        earlier = [one for one in before if one not in told.from_start]
        self.fits = (*(self.fits if goes_on else ()), *([told.fit] if told.fit else ()))
        self.told = msgspec.structs.replace(told, from_start=(*earlier, *told.from_start))
        self.trials += told.trials
        self.one_off_s |= {
            trial.candidate.label: trial.outcome.one_off_s or 0.0
            for trial in told.trials
            if trial.ratio is not None and isinstance(trial.outcome, Switched)
        }
        return self.told

    def strong_and_others(self, told: Screened | None = None) -> tuple[list[Candidate], list[Candidate]]:
        """Return the knobs that hold the program back elsewhere once they are on, and those that act beside them.

        With samples in memory a step is a tenth of what it was: what was 1% of it then, and not seen, is a tenth now.

        Args:
            told: by a process; None: by the last one in which anything was learned.
        """
        told = told if told is not None else self.told
        seen = [(trial, trial.ratio) for trial in told.trials if trial.ratio is not None]
        strong = [
            trial.candidate for trial, ratio in seen if trial.decision == ACCEPTED and ratio.low >= MOVES_MUCH
        ]
        open_ = [trial.candidate for trial, ratio in seen if ratio.ratio > 1 / HOPELESS]
        others = [
            one
            for one in (*open_, *told.unknown)
            if one not in strong and not any(exclude(step, one, self._design.conflicts) for step in strong)
        ]
        accepted = {trial.candidate.label for trial, _ in seen if trial.decision == ACCEPTED}
        # What is believed in all the same is not switched again for its size: the proof says that.
        return strong, others if any(one.label not in accepted for one in others) else []

    def rivals(self, gain: float) -> list[Candidate]:
        """Return knobs that gain so much and may be as fast as what they cannot be on together with, and gave way to.

        Samples kept in memory fill while they are switched on and off, and were 1.12 times too slow for it.
        """
        latest = {trial.candidate.label: trial for trial in self.trials}
        seen = [(trial, trial.ratio) for trial in latest.values() if trial.ratio is not None]
        taken = [(trial.candidate, ratio) for trial, ratio in seen if trial.decision == ACCEPTED]
        return [
            trial.candidate
            for trial, ratio in seen
            if trial.decision != ACCEPTED
            and ratio.ratio >= gain
            and any(
                exclude(step, trial.candidate, self._design.conflicts) and ratio.high > theirs.low / ALIKE
                for step, theirs in taken
            )
        ]

    def leaning(self, plan: PlanSteps) -> PlanSteps:
        """Return the knobs that a plan is proven with although switching alone does not tell that they gain.

        Beside no plan: those that are sure together.
        """
        knobs = [trial.candidate for trial in self.told.trials]
        return leaning(self.fits[-1], plan, knobs, self._design.conflicts) if self.fits else ()

    def hopeful(self, unknown: Sequence[Candidate]) -> list[Candidate]:
        """Return those that helped when they were switched before, or that nothing is known of and much expected."""
        before = {trial.candidate.label: trial.decision for trial in self.trials}
        return [one for one in unknown if before.get(one.label, ACCEPTED if hoped(one) else "") == ACCEPTED]


def _key(base: PlanSteps, *, passive: bool) -> str:
    return "+".join(["switch", *(step.label for step in base)]) + ("|passive" if passive else "")


def hoped(candidate: Candidate) -> bool:
    """Whether so much is expected of a candidate that it is part of a plan untried."""
    return candidate.expected >= EXPECTED
