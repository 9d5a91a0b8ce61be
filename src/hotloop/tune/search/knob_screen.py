"""All knobs that can be switched in a running program, screened together in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Switched, Trial
from hotloop.stats.switching import SwitchFit
from hotloop.tune.design.patterns import exclude, schedule
from hotloop.tune.executor import Executor, PlanSteps, SwitchOrder, SwitchRecord
from hotloop.tune.search.hold_fits import fitted
from hotloop.tune.search.status import Status
from hotloop.tune.verdict.reasons import NO_DIFFERENCE, NO_EFFECT, SLOWER

MAX_HOLDS = 600
MIN_HOLDS, EVERY = 16, 8
"""Of the patterns: the fewest, and after how many more it is asked if that is enough."""
METHOD = "switched on and off together with others within one process"


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

    def run(self, order: SwitchOrder, enough: Callable[[SwitchFit, int], bool]) -> SwitchRecord:
        """Switch until enough is known, or the time is over.

        Args:
            order: the knobs, and for how long.
            enough: told what is known of the knobs, and after how many holds; whether more are not worth their time.
        """

        def ends(record: SwitchRecord) -> bool:
            num = sum(len(hold.on) != 1 for hold in record.holds)  # those of one knob alone come first
            if num < MIN_HOLDS or num % EVERY:
                return False
            fit = self.fit(record, order)
            return fit is not None and enough(fit, num)

        return self._executor.switch(order, ends)

    def fit(self, record: SwitchRecord, order: SwitchOrder) -> SwitchFit | None:
        """Return the regression over all holds; None: there are too few of them."""
        acting = [knob for knob in order.knobs if self._acts(record, knob)]
        labels = [knob.label for knob in acting]
        return fitted(
            [hold for hold in record.holds if hold.steps_s and set(hold.on) <= set(labels)],
            labels,
            self._pairs(acting),
            typical=self._typical and not order.buffered,
            even=[knob.label for knob in acting if self._alike(knob)],
        )

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


class KnobVerdict(NamedTuple):
    """What switching says of one knob."""

    status: Status
    trial: Trial


def verdicts(record: SwitchRecord, order: SwitchOrder, fit: SwitchFit | None) -> list[KnobVerdict]:
    """Return what a record says of each knob of which it says something."""
    found = (_verdict(knob, record, fit, order.base) for knob in order.knobs)
    return [one for one in found if one is not None]


def _verdict(
    knob: Candidate, record: SwitchRecord, fit: SwitchFit | None, base: PlanSteps
) -> KnobVerdict | None:
    label = knob.label
    failed = record.failed.get(label)
    if failed is not None:
        failure = Failure(kind=FailureKind.CRASH, message=failed)
        trial = _trial(knob, base, failure, f"failed when switched on: {failed}", None)
        return KnobVerdict(Status.FAILED, trial)
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
        trial = _trial(knob, base, outcome, f"{NO_EFFECT}: {evidence}", None)
        later = label in record.from_start
        return KnobVerdict(Status.UNTRIED if later else Status.NO_EFFECT, trial)
    if fit is None or label not in fit.knobs:
        return None
    ratio = fit.ratio([label])
    word = SLOWER if ratio.high < 1 else NO_DIFFERENCE
    decision = f"{word}: {ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], {METHOD}"
    return KnobVerdict(Status.OPEN, _trial(knob, base, outcome, decision, ratio))


def _trial(
    knob: Candidate, base: PlanSteps, outcome: Switched | Failure, decision: str, ratio: Ratio | None
) -> Trial:
    return Trial(
        key=knob.label,
        candidate=knob,
        incumbent=base,
        outcome=outcome,
        decision=decision,
        ratio=ratio,
        predicted=knob.predicted,
        method=METHOD,
    )
