"""What a tuning session keeps of its sets of processes, as a report shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hotloop.model.deep import Deep
from hotloop.model.tuning import TuneResult
from hotloop.report.content.content import HeldSteps, LossCurves, SetSamples
from hotloop.report.content.figures import label
from hotloop.store.session import Session
from hotloop.tune.executor import ArmRecord, RanSet, SwitchRecord


def looks(session: Session, tuning: TuneResult) -> tuple[Deep | None, Deep | None]:
    """Return what detailed profiling saw of the original and of the plan, of one set where one holds both.

    A plan that became smaller after it was looked at was not looked at; the original beside it was.
    """
    pairs = [(before.deep, after.deep) for before, after, _ in _confirmed(session, tuning)]
    both = next((pair for pair in pairs if all(pair)), None)
    if both is not None:
        return both
    originals = (ran.record.arm(0) for ran in _sets(session, "confirm|"))
    before = next((arm.deep for arm in originals if arm is not None and arm.deep is not None), None)
    return before, next((after for _, after in pairs if after is not None), None)


def samples(session: Session, tuning: TuneResult) -> Iterator[SetSamples]:
    """Yield the sets of the confirmation, raw."""
    for before, after, ran in _confirmed(session, tuning):
        at = ran.record.arms.index(after)
        yield SetSamples(
            rounds=tuple((times[0], times[at]) for times in ran.record.rounds if math.isfinite(times[at])),
            phases=(before.phases, after.phases),
            peak_bytes=(before.peak_bytes, after.peak_bytes),
        )


def held_steps(session: Session) -> dict[str, tuple[HeldSteps, ...]]:
    """Return the raw steps of each process whose knobs were switched, by what the keys of its trials begin with."""
    records = {key: session.get(key, SwitchRecord) for key in session.keys("switch")}
    return {
        key: tuple(HeldSteps(hold.on, hold.steps_s) for hold in record.holds)
        for key, record in records.items()
        if record is not None
    }


def loss_curves(session: Session, tuning: TuneResult) -> LossCurves | None:
    """Return the losses of all originals and of the confirmed plan, the longest first; None: no loss was seen."""
    plain: list[tuple[float, ...]] = []
    perturbed: list[tuple[float, ...]] = []
    for ran in _sets(session, "floor", "contest|", "compare|", "confirm|"):
        for at in ran.record.originals(ran.order):
            arm = ran.record.arm(at)
            if arm is not None and arm.losses:
                (perturbed if at in ran.order.perturbed else plain).append(arm.losses)
    if not plain:
        return None
    plans = [after.losses for _, after, _ in _confirmed(session, tuning) if after.losses]
    for curves in (plain, perturbed, plans):
        curves.sort(key=len, reverse=True)
    return LossCurves(
        original=plain[0],
        repeats=tuple(plain[1:]),
        perturbed=perturbed[0] if perturbed else (),
        plan=tuple(plans),
    )


def _confirmed(session: Session, tuning: TuneResult) -> Iterator[tuple[ArmRecord, ArmRecord, RanSet]]:
    """The original's and the plan's arm of each set of the confirmation that held both."""
    labels = [label(step.name, step.params) for step in tuning.plan.steps]
    for ran in _sets(session, "confirm|"):
        at = next((at for at, plan in enumerate(ran.order.plans) if [one.label for one in plan] == labels), 0)
        before, after = ran.record.arm(0), ran.record.arm(at)
        if at and before is not None and after is not None:
            yield before, after, ran


def _sets(session: Session, *begins: str) -> Iterator[RanSet]:
    for begin in begins:
        for key in session.keys(begin):
            ran = session.get(key, RanSet)
            if ran is not None:
                yield ran
