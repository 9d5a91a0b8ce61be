"""All knobs that can be switched in a running program, screened together in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Switched, Trial
from hotloop.stats.switching import SwitchFit
from hotloop.tune.design.patterns import exclude, schedule
from hotloop.tune.executor import Executor, PlanSteps, SwitchOrder, SwitchRecord
from hotloop.tune.search.hold_fits import fitted, quick
from hotloop.tune.search.predicted_plan import MIN_GAIN, opportunity_cost, predicted_plan
from hotloop.tune.verdict.decision import ACCEPTED, NO_DIFFERENCE, NO_EFFECT, SLOWER

MAX_HOLDS = 600
MIN_HOLDS, EVERY = 32, 16
"""Two cycles of the design for up to seven knobs; then, and after each further one, it is asked if that is enough."""
FEW_ON, FEW_EVERY = 4, 4
"""Of slow steps it is asked as soon as each knob was on so often: for a ResNet's, of a second, there was time for 26
holds, 15 of them with one knob alone or with none."""
ERROR = 0.008
"""Standard error of a knob's log gain at which more holds are not worth their time: a confirmation cannot see less."""
LEAST_SHARE = 0.2
"""Of the time there is, that is measured before switching ends because little is expected of more: within half a minute
the machine may run at another speed. What was recorded of an LSTM in two minutes gave the same plan after a third."""
NOT_SURE = "too little to be sure of, among so many"
METHOD = "switched on and off together with others within one process"


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """What switching told."""

    fit: SwitchFit | None = None
    plan: PlanSteps = ()
    """Predicted to be the fastest of what was switched."""
    trials: tuple[Trial, ...] = ()
    unknown: tuple[Candidate, ...] = ()
    """Not settled: too few holds."""
    from_start: tuple[Candidate, ...] = ()
    """They act only in a process that they are on in from its start."""


def switch_order(
    knobs: Sequence[Candidate],
    conflicts: Mapping[str, frozenset[str]],
    limit_s: float,
    *,
    base: PlanSteps = (),
    passive: bool = False,
    buffered: bool = False,
) -> SwitchOrder:
    """Return the order to screen knobs beside what is on all the time, for so long."""
    patterns = schedule(knobs, conflicts, MAX_HOLDS, seed=len(knobs))
    return SwitchOrder(
        base=base,
        knobs=tuple(knobs),
        patterns=tuple(tuple(pattern) for pattern in patterns),
        limit_s=limit_s,
        passive=passive,
        buffered=buffered,
    )


class KnobScreen:
    """Screens knobs.

    Args:
        executor: runs the process.
        conflicts: what cannot be on together.
        interactions: names that may help or hinder one another.
        typical: whether a hold is summed up by its median step, or by its mean (where long steps are the point).
        alike: whether a knob shortens every step alike: a typical hold is then summed up by its quickest steps.
    """

    def __init__(
        self,
        executor: Executor,
        conflicts: Mapping[str, frozenset[str]],
        interactions: Mapping[str, frozenset[str]],
        *,
        typical: bool,
        alike: Callable[[Candidate], bool] = lambda _: False,
    ) -> None:
        self._executor = executor
        self._conflicts = conflicts
        self._interactions = interactions
        self._typical = typical
        self._alike = alike

    def run(
        self,
        order: SwitchOrder,
        known: SwitchFit | None = None,
        ends: Callable[[Screened], bool] | None = None,
    ) -> SwitchRecord:
        """Switch until every knob is known well enough, with what is known before, or the time is over.

        Args:
            order: the knobs, and for how long.
            known: what another process with the same base has told.
            ends: whether what is known by then is enough, although not every knob is; None: it is not.
        """

        def enough(record: SwitchRecord) -> bool:
            many = len(record.holds) >= MIN_HOLDS
            if not many and not self._is_slow(record, order):
                return False
            if len(record.holds) % (EVERY if many else FEW_EVERY):
                return False
            return self._enough(record, order, known) or (
                ends is not None and ends(self.read(record, order, known))
            )

        return self._executor.switch(order, enough)

    def read(self, record: SwitchRecord, order: SwitchOrder, known: SwitchFit | None = None) -> Screened:
        """Return what a record says of its knobs.

        Args:
            record: of a process.
            order: that it had.
            known: what another process with the same base has told.
        """
        fit = self.fit(record, order, known)
        plan = predicted_plan(fit, order.knobs, self._conflicts) if fit else ()
        verdicts = [self._trial(knob, record, fit, plan, order) for knob in order.knobs]
        return Screened(
            fit=fit,
            plan=plan,
            trials=tuple(trial for trial in verdicts if trial is not None),
            unknown=tuple(knob for knob, trial in zip(order.knobs, verdicts, strict=True) if trial is None),
            from_start=tuple(knob for knob in order.knobs if knob.label in record.from_start),
        )

    def fit(
        self, record: SwitchRecord, order: SwitchOrder, known: SwitchFit | None = None
    ) -> SwitchFit | None:
        """Return the regression over all holds, with what is known before; None: there are too few of them."""
        acting = [knob for knob in order.knobs if self._acts(record, knob)]
        labels = [knob.label for knob in acting]
        found = fitted(
            [hold for hold in record.holds if hold.steps_s and set(hold.on) <= set(labels)],
            labels,
            self._pairs(acting),
            typical=self._typical and not order.buffered,
            even=[knob.label for knob in acting if self._alike(knob)],
        )
        return known.joined(found) if known is not None and found is not None else found

    def _pairs(self, knobs: Sequence[Candidate]) -> list[tuple[str, str]]:
        return [
            (one.label, other.label)
            for at, one in enumerate(knobs)
            for other in knobs[at + 1 :]
            if not exclude(one, other, self._conflicts) and self._interact(one, other)
        ]

    def _interact(self, one: Candidate, other: Candidate) -> bool:
        return other.name in self._interactions.get(one.name, ()) or one.name in self._interactions.get(
            other.name, ()
        )

    def _acts(self, record: SwitchRecord, knob: Candidate) -> bool:
        return knob.label not in record.failed and record.effects.get(knob.label, (False, ""))[0]

    def _is_slow(self, record: SwitchRecord, order: SwitchOrder) -> bool:
        """Whether few holds have taken a good part of the time, and tell of every knob."""
        known = [knob.label for knob in order.knobs if self._acts(record, knob)]
        num_on = [
            sum(label in hold.on for hold in record.holds) for label in known if _alone(record, label) is None
        ]
        return min(num_on, default=0) >= FEW_ON and _measured_s(record) >= LEAST_SHARE * order.limit_s

    def _enough(self, record: SwitchRecord, order: SwitchOrder, known: SwitchFit | None) -> bool:
        fit = self.fit(record, order, known)
        if fit is None:
            return False
        if all(_known(*fit.gain([label])) for label in fit.knobs):
            return True
        return (
            _measured_s(record) >= LEAST_SHARE * order.limit_s
            and opportunity_cost(fit, order.knobs, self._conflicts) < MIN_GAIN
        )

    def _trial(
        self,
        knob: Candidate,
        record: SwitchRecord,
        fit: SwitchFit | None,
        plan: PlanSteps,
        order: SwitchOrder,
    ) -> Trial | None:
        """What is known of one knob; None: nothing."""
        label, base = knob.label, order.base
        failed = record.failed.get(label)
        if failed is not None:
            failure = Failure(kind=FailureKind.CRASH, message=failed)
            return _trial(knob, base, failure, f"failed when switched on: {failed}", None)
        if label not in record.effects:
            return None
        on, evidence = record.effects[label]
        outcome = Switched(
            num_holds=len(record.holds),
            settle_steps=record.settled.get(label, 0),
            num_noisy=record.num_noisy,
            evidence=evidence,
            one_off_s=record.one_off_s.get(label),
        )
        if not on:
            return _trial(knob, base, outcome, f"{NO_EFFECT}: {evidence}", None)
        rival = next((step for step in plan if step != knob and exclude(step, knob, self._conflicts)), None)
        beside = [step for step in plan if not exclude(step, knob, self._conflicts)]
        ratio = _ratio(knob, fit, beside) or _alone(record, label)
        if ratio is None:
            return None
        return _trial(knob, base, outcome, ACCEPTED if knob in plan else _why_not(ratio, rival), ratio)


def _alone(record: SwitchRecord, label: str) -> Ratio | None:
    """A knob that is left out of the patterns is far slower: so says its first hold."""
    alone = [quick(hold.steps_s) for hold in record.holds if hold.on == (label,) and hold.steps_s]
    off = [quick(hold.steps_s) for hold in record.holds if not hold.on and hold.steps_s]
    if not alone or not off:
        return None
    gain = median(off) / median(alone)
    return Ratio(gain, gain / 1.5, gain * 1.5) if gain < 1 / 1.5 else None


def _measured_s(record: SwitchRecord) -> float:
    return sum(sum(hold.steps_s) for hold in record.holds)


def _known(gain: float, error: float) -> bool:
    return error < ERROR or abs(gain) > 6 * error


def _ratio(knob: Candidate, fit: SwitchFit | None, plan: Sequence[Candidate]) -> Ratio | None:
    if fit is None or knob.label not in fit.knobs:
        return None
    others = [step.label for step in plan if step != knob and step.name != knob.name]
    return fit.ratio([*others, knob.label], others)


def _why_not(ratio: Ratio, rival: Candidate | None) -> str:
    """Say why a knob is not in the plan.

    Args:
        ratio: what it brings beside the plan, without what it cannot be on together with.
        rival: a step of the plan that it cannot be on together with; None: there is none.
    """
    if rival is not None and ratio.low > 1:
        return f"replaced by {rival.label}, which was no slower"
    word = SLOWER if ratio.high < 1 else NOT_SURE if ratio.low > 1 else NO_DIFFERENCE
    return f"{word}: {ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], {METHOD}"


def _trial(
    knob: Candidate, base: PlanSteps, outcome: Switched | Failure, decision: str, ratio: Ratio | None
) -> Trial:
    return Trial(
        key="+".join(["switch", *(step.label for step in base)]) + f"|{knob.label}",
        candidate=knob,
        incumbent=base,
        outcome=outcome,
        decision=decision,
        ratio=ratio,
        predicted=knob.predicted,
        method=METHOD,
    )
