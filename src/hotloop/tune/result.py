"""What was found, as the result that is shown and written."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.quantities import duration
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import (
    Baseline,
    Compatibility,
    Contention,
    Failure,
    LikelyPlan,
    Measured,
    OwnRun,
    Plan,
    PlanStep,
    Switched,
    TuneResult,
)
from hotloop.stats.empty_plan import unused_s
from hotloop.tune.confirm.confirmation import Confirmer
from hotloop.tune.confirm.evidence import MIN_SETS, TELLING, Confirmation
from hotloop.tune.confirm.factors import Factors
from hotloop.tune.confirm.likely import likely_from_search, likely_from_sets, why_open
from hotloop.tune.design.neighbours import was_busy
from hotloop.tune.executor import ArmRecord, PlanSteps
from hotloop.tune.search.arms import Arms
from hotloop.tune.search.belief import NO_TIME
from hotloop.tune.search.contest import METHOD, Contest
from hotloop.tune.search.knob_screen import METHOD as SWITCHED
from hotloop.tune.search.search import Search
from hotloop.tune.verdict.decision import ACCEPTED

NOT_TRIED = "not tried: interrupted"
UNTRIED = "expected to help"
"""How the reason begins of what was believed in and never measured."""
CHANGED = 1.3
"""Times the quickest set's step, from which a machine is said to run at several speeds."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session got to."""

    candidates: tuple[Candidate, ...]
    refused: tuple[Refusal, ...]
    """Before anything was tried."""
    arms: Arms
    search: Search
    contest: Contest
    confirmer: Confirmer
    heed_neighbours: frozenset[str]
    """Names of optimizations whose gain is what other processes take."""
    interrupted: bool
    wall_s: float
    budget_s: float | None = None

    def factors(self) -> Factors:
        """Return what finds the factor of each step."""
        return Factors(
            self.confirmer.sets,
            self.search.trials,
            self.search.screening.fits,
            self.confirmer.switchable,
            self.heed_neighbours,
        )


def tune_result(observation: Observation, found: Found) -> TuneResult:
    """Return the result of a session."""
    proven = found.confirmer.proven()
    steps = found.factors().steps(proven) if proven else ()
    before, after = _last_arms(found, proven)
    ground = found.arms.originals.baseline() if found.arms.originals.measured else None
    return TuneResult(
        command=observation.command,
        baseline=_baseline(observation),
        floor=ground.floor if ground else None,
        plan=_plan(observation, proven, steps),
        likely=tuple(_likely(observation, found, proven)),
        refused=(*found.refused, *(_as_it_was(found, one) for one in _refusals(found, proven))),
        trials=tuple(found.search.trials),
        peak_bytes=(before.peak_bytes if before else None, after.peak_bytes if after else None),
        tree_peak=(before.tree_peak if before else None, after.tree_peak if after else None),
        contention=_contention(found),
        confirmation=_how(found, proven),
        num_sets=len(found.confirmer.sets.counted(proven.plan)) if proven else None,
        wall_s=found.wall_s,
        budget_s=found.budget_s,
        interrupted=found.interrupted,
    )


def _baseline(observation: Observation) -> Baseline:
    step = observation.step
    assert step is not None, "a program without steps is not tuned"
    assert observation.anchor is not None
    return Baseline(
        step_s=step.median_s,
        mean_s=step.mean_s,
        low_s=step.low_s,
        high_s=step.high_s,
        samples_per_s=step.samples_per_s,
        peak_bytes=observation.memory.peak_bytes,
        anchor=observation.anchor,
        own_run=_own_run(observation),
    )


def _own_run(observation: Observation) -> OwnRun | None:
    """Return the run that was observed, if that was the whole one."""
    run = observation.run
    if observation.total_steps is None or run.num_steps != observation.total_steps:
        return None
    wall_s = run.wall_s - run.parts.get("held_by_hotloop_s", 0.0)
    return OwnRun(num_steps=run.num_steps, wall_s=wall_s, training_s=max(0.0, run.training_s))


def _plan(observation: Observation, proven: Confirmation | None, steps: tuple[PlanStep, ...]) -> Plan:
    program = observation.program
    return Plan(
        steps=steps,
        speedup=proven.total.ratio if proven else None,
        parity=proven.parity if proven else None,
        fit=Compatibility(
            infers=observation.anchor is not None and observation.anchor.infers,
            machine=observation.machine,
            torch_version=program.torch_version,
            script=program.script,
            script_sha256=program.script_sha256,
            command=observation.command,
        ),
        sites=observation.sites,
    )


def _likely(observation: Observation, found: Found, proven: Confirmation | None) -> Iterator[LikelyPlan]:
    """What fresh processes left open, else what the search believes in and nobody confirmed."""
    seen = found.confirmer.promising()
    if seen is not None:
        yield likely_from_sets(seen, found.factors().steps(seen), observation.command)
        return
    believed = _told(observation, found, found.search.belief.plan)
    known = proven is not None and all(step in proven.plan for step in believed)
    if not believed or known or found.confirmer.sets.num(believed):
        return
    guess = _search_ratio(found, believed)
    if guess is None or math.sqrt(guess[0].high / guess[0].low) - 1 > TELLING:
        return
    if guess[0].ratio > 1.01 * (proven.speed if proven else 1.0):
        yield likely_from_search(believed, *guess, observation.command)


def _told(observation: Observation, found: Found, plan: PlanSteps) -> PlanSteps:
    """Return a plan without what gains from neighbours and was tried beside some, if there were none before."""
    if was_busy(observation):
        return plan
    beside = {trial.candidate.label for trial in found.search.trials if _num_noisy(trial.outcome)}
    return tuple(step for step in plan if step.name not in found.heed_neighbours or step.label not in beside)


def _num_noisy(outcome: Measured | Switched | Failure) -> int:
    if isinstance(outcome, Measured):
        return outcome.contention.num_noisy
    return outcome.num_noisy if isinstance(outcome, Switched) else 0


def _search_ratio(found: Found, plan: PlanSteps) -> tuple[Ratio, str] | None:
    """What the search measured of a plan: the product of what was switched and what had arms."""
    switched: list[str] = []
    ratio = Ratio(1.0, 1.0, 1.0)
    for fit in reversed(found.search.screening.fits):
        told = [step.label for step in plan if step.label in fit.knobs and step.label not in switched]
        switched += told
        ratio = _times(ratio, fit.ratio(told))
    tried = {
        trial.candidate.label: trial.ratio
        for trial in found.contest.trials
        if trial.ratio is not None and trial.decision == ACCEPTED
    }
    for step in plan:
        own = tried.get(step.label)
        if own is not None:
            ratio = _times(ratio, own)
    if not switched and not any(step.label in tried for step in plan):
        return None
    return ratio, METHOD if not switched else SWITCHED


def _times(one: Ratio, other: Ratio) -> Ratio:
    return Ratio(one.ratio * other.ratio, one.low * other.low, one.high * other.high)


def _refusals(found: Found, proven: Confirmation | None) -> list[Refusal]:
    """Every candidate that is not in the plan, with the last thing that is known of it."""
    refused = {**found.search.belief.refused, **found.confirmer.dropped}
    planned = {step.label for step in proven.plan} if proven else set()
    believed = {step.label for step in found.search.belief.plan}
    for candidate in found.candidates:
        label = candidate.label
        if label in believed and label not in found.confirmer.dropped:
            refused[label] = Refusal(label, _open(found, label))
        elif found.interrupted and refused.get(label, Refusal(label, "not tried")).reason.startswith(
            "not tried"
        ):
            refused[label] = Refusal(label, NOT_TRIED)
    return [refusal for label, refusal in refused.items() if label not in planned]


def _as_it_was(found: Found, one: Refusal) -> Refusal:
    """Mark what something was measured of, and say of what was not whether the time was used up."""
    tried = not one.reason.startswith(("not tried", UNTRIED))
    left_s = unused_s(found.budget_s, found.wall_s)
    if left_s is None or not one.reason.startswith(NO_TIME.removesuffix(" (--budget)")):
        return msgspec.structs.replace(one, tried=tried)
    reason = f"not tried: it and a proof need more than the {duration(left_s)} that were left (--budget)"
    return Refusal(one.name, reason)


def _open(found: Found, label: str) -> str:
    """What became of a step that was believed in and is in no proven plan."""
    for confirmation in (found.confirmer.sets.standing(plan) for plan in reversed(found.confirmer.goals)):
        if confirmation is not None and label in {step.label for step in confirmation.plan}:
            others = [step.label for step in confirmation.plan if step.label != label]
            gone = [other for other in others if other in found.confirmer.dropped]
            if gone:
                return f"not confirmed: fresh processes had it on beside {gone[0]} alone, which did not hold"
            beside = f"together with {', '.join(others)}: " if others else ""
            return f"not proven when confirmed: {beside}{_so_far(confirmation)}{why_open(confirmation)}"
    if found.interrupted:
        return "promising, but interrupted before it was confirmed"
    if label in {trial.candidate.label for trial in found.search.trials}:
        return "promising, but no time was left to confirm it"
    return f"{UNTRIED}, but too little time was left to try it (--budget)"


def _so_far(seen: Confirmation) -> str:
    """Return what too few sets gave; with enough of them the reason says it."""
    ratio = seen.total.ratio
    if ratio is None or seen.num_sets >= MIN_SETS or seen.beside is not None:
        return ""
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], "


def _contention(found: Found) -> Contention:
    reports = found.arms.contentions
    shares = [report.max_foreign_share for report in reports if report.max_foreign_share is not None]
    return Contention(
        num_blocks=sum(report.num_blocks for report in reports),
        num_void=sum(report.num_void for report in reports),
        num_noisy=sum(report.num_noisy for report in reports),
        max_foreign_share=max(shares, default=None),
    )


def _last_arms(found: Found, proven: Confirmation | None) -> tuple[ArmRecord | None, ArmRecord | None]:
    """Return what the original and the plan did in the last set; None: it failed there, or nothing is proven."""
    if proven is None:
        return (None, None)
    order, record = found.confirmer.sets.of(proven.plan)[-1]
    return record.arm(0), record.arm(order.plans.index(proven.plan))


def _how(found: Found, proven: Confirmation | None) -> str:
    if proven is None:
        return "no change was proven faster"
    sets = [record for _, record in found.confirmer.sets.counted(proven.plan)]
    rounds = sorted(len(record.rounds) for record in sets)
    many = f"{rounds[0]} to {rounds[-1]}" if rounds[0] != rounds[-1] else f"{rounds[0]}"
    aside = found.confirmer.sets.num(proven.plan) - len(sets)
    beside = f" ({aside} more beside other processes left out)" if aside else ""
    return (
        f"{len(sets)} sets of fresh processes{beside}, {many} blocks of each copy of your program in turns (ABBA), "
        f"as you run it; 95% interval over sets and blocks, valid at every look{_changed_speed(found)}"
    )


def _changed_speed(found: Found) -> str:
    """Say that the same program ran at several speeds, nobody else at work: what one of them gains another may not.

    A net of 0.75 ms a step took 1.1 ms for minutes, all threads alike; a plan was 1.2 then, and 0.98 before.
    """
    least_s, most_s = found.arms.originals.range_s
    if most_s <= CHANGED * least_s:
        return ""
    return (
        f"; your program as it is took {duration(least_s)} to {duration(most_s)} a step from set to set: what is "
        "gained may be another at other times"
    )
