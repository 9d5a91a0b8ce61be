"""How a session spends its time: the action that brings most per second, and again with what it told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from hotloop.model.goal import Goal
from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Choice, Switched, Trial
from hotloop.stats.switching import SwitchFit
from hotloop.tune.confirm.confirmation import Confirmer, Dropped
from hotloop.tune.confirm.standing import Standing
from hotloop.tune.design.experiment import Design
from hotloop.tune.executor import PlanSteps, SetOrder, SetRecord, plan_key
from hotloop.tune.goals.gains import prior
from hotloop.tune.goals.objective import Objective
from hotloop.tune.goals.savings import peaks_prior
from hotloop.tune.search.actions import Compare, Confirm, Doing, Screen, Stop, base_of, steps_of
from hotloop.tune.search.arm_comparison import ArmComparison, step_by_step
from hotloop.tune.search.arm_verdict import decide
from hotloop.tune.search.assess import Priors
from hotloop.tune.search.evidence import Compared, Evidence, Screened
from hotloop.tune.search.knob_screen import verdicts
from hotloop.tune.search.offers import screen_error, together
from hotloop.tune.search.overview import Overview
from hotloop.tune.search.plateau import without_beyond_plateau
from hotloop.tune.search.policy import next_action
from hotloop.tune.search.screening import Screening
from hotloop.tune.search.state import Prices, Proof, State
from hotloop.tune.search.status import Known, Status
from hotloop.tune.search.substitutes import substitutes, waiting
from hotloop.tune.search.updates import changed, tried, with_verdict
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.session.progress_line import progress_line
from hotloop.tune.sets.set_runner import SetRunner
from hotloop.tune.verdict.reasons import ACCEPTED, not_proven

CONTRADICTS = 3.0
"""Standard deviations between a plan and the sum of its parts from which it is asked which step is to blame."""
FLOOR_ROUNDS = 5
"""Of the program against itself, where sets to come have no room for that."""
NO_TIME = "not tried: too little time was left (--budget)"
NOT_WORTH = "not tried: what it may bring is not worth its time here"


class Search:
    """Finds the optimizations that help together.

    Args:
        runner: runs the sets.
        ledger: knows the budget, and keeps decisions.
        screening: switches knobs.
        comparison: runs candidates beside a plan.
        confirmer: proves plans.
        design: what the experiment is designed from.
        progress: told of what is done, and why.
        tell_standing: told how far the search is.
    """

    def __init__(
        self,
        runner: SetRunner,
        ledger: Ledger,
        screening: Screening,
        comparison: ArmComparison,
        confirmer: Confirmer,
        design: Design,
        progress: Callable[[str], None],
        tell_standing: Callable[[str], None] | None = None,
    ) -> None:
        self._runner = runner
        self._ledger = ledger
        self.screening = screening
        self.comparison = comparison
        self._confirmer = confirmer
        self._design = design
        self._overview = Overview(runner, confirmer, design)
        self._progress = progress
        self._tell_standing = tell_standing
        self._prior = Priors(prior((), {}, {}, {}))
        self.state = State(known=(), speeds=self._prior.speeds, evidence=(), plan=(), proof=Proof())
        self.choices: list[Choice] = []
        self.trials: list[Trial] = []
        self.is_done = False
        """Whether nothing that was left was worth its time; otherwise it was interrupted, or its time was over."""

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Try the candidates and prove what helps, until nothing is worth the time that is left."""
        if not candidates:
            return
        self.state = self._begun(candidates)
        if self._runner.room(3) < 3:
            rounds = min(FLOOR_ROUNDS, self._design.max_rounds or FLOOR_ROUNDS)
            self._runner.measure_floor([tuple(candidates)], rounds)
        number = 0
        while True:
            number = self._first_known(number)
            action = self._decided(number)
            self._tell(action)
            if isinstance(action, Stop):
                self.is_done = action.is_done
                return
            self.state = self._done(number, action)
            self._say_standing()
            number += 1

    def _begun(self, candidates: Sequence[Candidate]) -> State:
        design = self._design
        speeds = prior(candidates, design.interactions, design.conflicts, {})
        peaks = peaks_prior(candidates, design.conflicts) if design.aim.counts_memory else None
        self._prior = Priors(speeds, peaks)
        later = {one.name: one.reason for one in waiting(candidates, design.stands_in_for)}
        known = tuple(
            Known(
                candidate=one,
                status=Status.SUBSTITUTE if one.label in later else Status.UNTRIED,
                reason=later.get(one.label, NO_TIME),
                start_s=one.one_off_s or 0.0,
                switchable=design.switchable(one),
            )
            for one in candidates
        )
        state = State(
            known=known,
            speeds=speeds,
            objective=Objective(aim=design.aim),
            evidence=(),
            plan=(),
            proof=Proof(),
            conflicts=design.conflicts,
            interactions=design.interactions,
        )
        return self._overview(state, self._prior, ())

    def _first_known(self, number: int) -> int:
        """Return the next decision; one of an earlier session about what is not to be tried any more is left out."""
        labels = {one.label for one in self.state.known}
        while (action := self._ledger.look(f"decision|{number}", Doing)) is not None:
            if all(step.label in labels for step in (*base_of(action), *steps_of(action))):
                break
            number += 1
        return number

    def _decided(self, number: int) -> Doing | Stop:
        """Return the next action; one that was decided before the session was killed is not decided again."""
        key = f"decision|{number}"
        action: Doing | Stop | None = self._ledger.look(key, Doing)
        if action is None:
            action = next_action(self.state, self._prices(), self._runner.left_s())
        if not isinstance(action, Stop):
            self._ledger.once(key, Doing, lambda: action)
        return action

    def _tell(self, action: Doing | Stop) -> None:
        self.choices.append(Choice(at_s=self._ledger.budget.spent(), why=action.why))
        self._progress(action.why)

    def _prices(self) -> Prices:
        originals, perturbed = self._runner.first_originals(
            (self.state.plan,), undecided=self.comparison.wants_perturbed
        )
        return Prices(
            costs=self._runner.costs,
            hold_s=self._design.hold_s,
            room=self._runner.room(99),
            max_rounds=self._design.max_rounds,
            curve_rounds=self._design.curve_rounds,
            num_originals=len(originals),
            num_perturbed=len(perturbed),
            grace_s=self._runner.grace_s,
        )

    def _done(self, number: int, action: Doing) -> State:
        if isinstance(action, Screen):
            return self._screened(number, action)
        if isinstance(action, Compare):
            return self._compared(number, action)
        return self._confirmed(action)

    # Screening

    def _screened(self, number: int, action: Screen) -> State:
        def enough(fit: SwitchFit, num_holds: int) -> bool:
            """Whether as many holds again bring less per second than the time brings elsewhere."""
            base = frozenset(step.label for step in action.base)
            then = self._overview(self._counted(action.knobs), self._prior, (Screened(fit=fit, base=base),))
            then = msgspec.structs.replace(then, hold_sd=_hold_sd(fit, num_holds))
            knobs = [one for one in then.known if one.candidate in action.knobs]
            value = together(then, knobs, screen_error(then, num_holds), action.base)
            return value < action.price * num_holds * self._design.hold_s

        key = f"switch+{plan_key(action.base)}|{number}" if action.base else f"switch|{number}"
        result = self.screening.run(key, action, enough)
        state = self.state
        told = verdicts(result.record, result.order, result.fit)
        for one in told:
            state = with_verdict(state, one.trial, one.status)
        labels = {one.trial.candidate.label for one in told}
        untold = tuple(knob for knob in action.knobs if knob.label not in labels)
        state = changed(
            state, untold, switchable=False
        )  # a program that ended before gets processes of their own
        state = self._overview(state, self._prior, result.evidence)
        if result.fit is not None:
            state = msgspec.structs.replace(state, hold_sd=_hold_sd(result.fit, len(result.record.holds)))
        for one in told:
            decision = ACCEPTED if one.trial.candidate in state.plan else one.trial.decision
            # With the key of the process, under which its holds are stored.
            trial = msgspec.structs.replace(one.trial, key=f"{key}|{one.trial.key}", decision=decision)
            self.trials.append(trial)
        return state

    def _counted(self, knobs: PlanSteps) -> State:
        """Return the state as if knobs were measured."""
        labels = {knob.label for knob in knobs}
        known = tuple(
            msgspec.structs.replace(one, num_measured=max(1, one.num_measured), status=tried(one.status))
            if one.label in labels
            else one
            for one in self.state.known
        )
        return msgspec.structs.replace(self.state, known=known)

    # Arms

    def _compared(self, number: int, action: Compare) -> State:
        result = self.comparison.run(f"compare|{number}", action)
        state = self.state
        for gone in self._confirmer.take(result.order, result.record, action.base):
            state = self._with_dropped(state, gone)
        for trial in result.trials:
            state = self._with_arm(state, trial)
        state = _if_late(state, result.order, result.record, action.base)
        self.trials += result.trials
        state = self._overview(state, self._prior, result.evidence)
        told = without_beyond_plateau(state)
        return state if told is state else self._overview(told, self._prior, ())

    def _with_arm(self, state: State, trial: Trial) -> State:
        assert not isinstance(trial.outcome, Switched), "an arm has a process of its own"
        status, _, _ = decide(trial.candidate, trial.outcome, self._runner.originals.baseline())
        state = with_verdict(state, trial, status)
        if status is Status.LATE:
            state = _later(state, trial.candidate)
        return self._with_substitutes(state, trial.candidate, parity=status is Status.PARITY)

    def _with_substitutes(self, state: State, gone: Candidate, *, parity: bool) -> State:
        """Let a gentler form be tried in place of what does not learn the same."""
        if not parity:
            return state
        found = substitutes([one.candidate for one in state.known], gone, self._design.stands_in_for)
        waiting_for = [one for one in found if state.of(one).status is Status.SUBSTITUTE]
        return changed(state, tuple(waiting_for), status=Status.UNTRIED, reason=NO_TIME)

    # Confirmation

    def _confirmed(self, action: Confirm) -> State:
        order, record, gone = self._confirmer.confirm(action.plan)
        state = self.state
        for one in gone:
            state = self._with_dropped(state, one)
        evidence: tuple[Evidence, ...] = ()
        if not gone and action.plan in order.plans:
            evidence = self._observed(order, record, action.plan)
            state = self._acted(state, record, order, action.plan)
        state = _if_late(state, order, record, action.plan)
        return self._overview(state, self._prior, evidence)

    def _observed(self, order: SetOrder, record: SetRecord, plan: PlanSteps) -> tuple[Evidence, ...]:
        heeding, _ = self._confirmer.beside(plan)
        seen = self._confirmer.standing(plan)
        if heeding or (seen is not None and seen.beside is not None):
            return ()
        found = step_by_step(order, record, self._runner.originals.baseline(), plan)
        if any(self._contradicts(one) for one in found):
            self._confirmer.split(plan)
        return found

    def _contradicts(self, seen: Compared) -> bool:
        """Whether a plan in fresh processes is not what its parts have shown."""
        mean, deviation = self.state.speeds.gain(seen.after, seen.before)
        return abs(seen.value - mean) > CONTRADICTS * math.hypot(deviation, math.sqrt(seen.variance))

    def _acted(self, state: State, record: SetRecord, order: SetOrder, plan: PlanSteps) -> State:
        """Count the steps of a plan that was measured as measured; of a single one it is known if it acts."""
        arm = record.arm(order.plans.index(plan))
        if arm is None:
            return state
        acting = tuple(step for step in plan if not_proven(arm.effects, step) is None)
        for step in acting:
            known = state.of(step)
            status = tried(known.status)
            state = changed(state, (step,), num_measured=known.num_measured + 1, status=status)
        return state

    def _with_dropped(self, state: State, gone: Dropped) -> State:
        status = Status.PARITY if gone.parity else Status.FAILED if gone.effect else Status.NO_EFFECT
        state = changed(state, (gone.step,), status=status, reason=gone.reason)
        return self._with_substitutes(state, gone.step, parity=gone.parity)

    def _say_standing(self) -> None:
        if self._tell_standing is None:
            return
        proven, seen = self._confirmer.proven(), self._confirmer.sets.promising()
        line = progress_line(
            self.state.plan,
            len(self.trials),
            promising=_ratio(seen),
            proven=_ratio(proven),
            of_memory=self._design.aim.goal is Goal.MEMORY,
        )
        self._tell_standing(line)


def _if_late(state: State, order: SetOrder, record: SetRecord, plan: PlanSteps) -> State:
    """Expect a plan that did not become warm in time to take longer, for the step that takes longest."""
    if not plan or plan not in order.plans or not record.is_late(order.plans.index(plan)):
        return state
    return _later(state, max(plan, key=lambda step: state.of(step).start_s))


def _later(state: State, candidate: Candidate) -> State:
    """Expect a candidate to take longer to become warm than it was waited for."""
    return changed(state, (candidate,), start_s=2 * max(state.of(candidate).start_s, 1.0))


def _ratio(seen: Standing | None) -> Ratio | None:
    return seen.ratio if seen is not None else None


def _hold_sd(fit: SwitchFit, num_holds: int) -> float:
    """Return the deviation of a hold that the errors of the knobs speak of: each is on in half of the holds."""
    errors = [fit.gain([label])[1] for label in fit.knobs]
    return median(errors) * math.sqrt(num_holds) / 2 if errors else 0.05
