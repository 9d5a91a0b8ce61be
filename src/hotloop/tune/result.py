"""What was found, as the result that is shown and written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
    Trial,
    TuneResult,
)
from hotloop.stats.empty_plan import unused_s
from hotloop.stats.log_ratio import ratio_of
from hotloop.tune.confirm.confirmation import Confirmer
from hotloop.tune.confirm.factors import Factors
from hotloop.tune.confirm.likely import likely_from_search, likely_from_sets, why_open
from hotloop.tune.confirm.set_pairs import MIN_SETS
from hotloop.tune.confirm.standing import TELLING, Standing
from hotloop.tune.design.neighbours import was_busy
from hotloop.tune.executor import ArmRecord, PlanSteps
from hotloop.tune.outcome import reached
from hotloop.tune.search.arm_comparison import METHOD
from hotloop.tune.search.knob_screen import METHOD as SWITCHED
from hotloop.tune.search.search import NO_TIME, NOT_WORTH, Search
from hotloop.tune.search.status import Known, Status
from hotloop.tune.sets.set_runner import SetRunner
from hotloop.tune.verdict.reasons import ACCEPTED

NOT_TRIED = "not tried: interrupted"
CHANGED = 1.3
"""Times the quickest set's step, from which a machine is said to run at several speeds."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session got to."""

    candidates: tuple[Candidate, ...]
    refused: tuple[Refusal, ...]
    """Before anything was tried."""
    runner: SetRunner
    search: Search
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
            self.search.state.speeds.gain,
            self.heed_neighbours,
            self.search.state.peaks,
        )


def tune_result(observation: Observation, found: Found) -> TuneResult:
    """Return the result of a session."""
    proven = found.confirmer.proven()
    steps = found.factors().steps(proven) if proven else ()
    before, after = _last_arms(found, proven)
    ground = found.runner.originals.baseline() if found.runner.originals.measured else None
    likely = tuple(_likely(observation, found, proven))
    return TuneResult(
        command=observation.command,
        baseline=_baseline(observation),
        floor=ground.floor if ground else None,
        plan=_plan(observation, proven, steps),
        likely=likely,
        refused=(*found.refused, *(_as_it_was(found, one) for one in _refusals(found, proven, likely))),
        trials=tuple(_by_goal(found, proven)),
        peak_bytes=(before.peak_bytes if before else None, after.peak_bytes if after else None),
        tree_peak=(before.tree_peak if before else None, after.tree_peak if after else None),
        contention=_contention(found),
        confirmation=_how(found, proven),
        num_sets=len(found.confirmer.sets.counted(proven.plan)) if proven else None,
        wall_s=found.wall_s,
        budget_s=found.budget_s,
        choices=tuple(found.search.choices),
        interrupted=found.interrupted,
        aim=found.search.state.objective.aim,
        goal=reached(observation, found.search.state.objective.aim, found.runner.seen, proven),
    )


def _by_goal(found: Found, proven: Standing | None) -> Iterator[Trial]:
    """Yield the trials; where memory counts, a step of the plan was accepted for more than its time."""
    chosen = proven.plan if proven is not None and found.search.state.objective.aim.counts_memory else ()
    for trial in found.search.trials:
        measured = isinstance(trial.outcome, Measured) and trial.candidate in chosen
        yield msgspec.structs.replace(trial, decision=ACCEPTED) if measured else trial


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


def _plan(observation: Observation, proven: Standing | None, steps: tuple[PlanStep, ...]) -> Plan:
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


def _likely(observation: Observation, found: Found, proven: Standing | None) -> Iterator[LikelyPlan]:
    """What fresh processes left open, else what the search believes in and nobody confirmed."""
    if found.search.state.objective.aim.counts_memory:  # what is smaller is among the points, proven or not
        return
    seen = found.confirmer.sets.promising(
        [one.label for one in found.search.state.known if one.status.is_refused]
    )
    if seen is not None:
        yield likely_from_sets(seen, found.factors().steps(seen), observation.command)
        return
    believed = _told(observation, found, found.search.state.plan)
    known = proven is not None and all(step in proven.plan for step in believed)
    if not believed or known or found.confirmer.sets.num(believed):
        return
    ratio, method = _search_ratio(found, believed)
    if math.sqrt(ratio.high / ratio.low) - 1 > TELLING:
        return
    if ratio.ratio > 1.01 * (proven.speed if proven else 1.0):
        yield likely_from_search(believed, ratio, method, observation.command)


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


def _search_ratio(found: Found, plan: PlanSteps) -> tuple[Ratio, str]:
    """What the search believes of a plan, and how its steps were measured."""
    mean, deviation = found.search.state.speeds.gain({step.label for step in plan})
    switched = any(trial.method == SWITCHED for trial in found.search.trials if trial.candidate in plan)
    return ratio_of(mean, 1.96 * deviation), SWITCHED if switched else METHOD


def _refusals(found: Found, proven: Standing | None, likely: Sequence[LikelyPlan]) -> list[Refusal]:
    """Every candidate that is not in the plan, with the last thing that is known of it."""
    planned = {step.label for step in proven.plan} if proven else set()
    promising = {step.label for step in found.search.state.plan}
    promising |= {
        Candidate(name=step.name, params=step.params).label for plan in likely for step in plan.steps
    }
    return [
        Refusal(one.label, _why_not(found, one, one.label in promising))
        for one in found.search.state.known
        if one.label not in planned
    ]


def _why_not(found: Found, one: Known, is_promising: bool) -> str:
    if is_promising:
        return _open(found, one.label)
    if one.status is Status.UNTRIED and one.reason == NO_TIME:
        if found.interrupted:
            return NOT_TRIED
        return NOT_WORTH if found.search.is_done else NO_TIME
    return one.reason


def _as_it_was(found: Found, one: Refusal) -> Refusal:
    """Mark what something was measured of, and say of what was not whether the time was used up."""
    tried = not one.reason.startswith("not tried")
    left_s = unused_s(found.budget_s, found.wall_s)
    if left_s is None or not one.reason.startswith(NO_TIME.removesuffix(" (--budget)")):
        return msgspec.structs.replace(one, tried=tried)
    reason = f"not tried: it and a proof need more than the {duration(left_s)} that were left (--budget)"
    return Refusal(one.name, reason)


def _open(found: Found, label: str) -> str:
    """What became of a step that was believed in and is in no proven plan."""
    refused = {one.label for one in found.search.state.known if one.status.is_refused}
    for confirmation in (found.confirmer.sets.standing(plan) for plan in reversed(found.confirmer.goals)):
        if confirmation is not None and label in {step.label for step in confirmation.plan}:
            others = [step.label for step in confirmation.plan if step.label != label]
            gone = [other for other in others if other in refused]
            if gone:
                return f"not confirmed: measured only together with {gone[0]}, which was rejected"
            beside = f"together with {', '.join(others)}: " if others else ""
            return f"not proven when confirmed: {beside}{_so_far(confirmation)}{why_open(confirmation)}"
    if found.interrupted:
        return "promising, but interrupted before it was confirmed"
    return "promising, but no time was left to confirm it"


def _so_far(seen: Standing) -> str:
    """Return what too few sets gave; with enough of them the reason says it."""
    ratio = seen.total.ratio
    if ratio is None or seen.num_sets >= MIN_SETS or seen.beside is not None:
        return ""
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], "


def _contention(found: Found) -> Contention:
    reports = found.runner.contentions
    shares = [report.max_foreign_share for report in reports if report.max_foreign_share is not None]
    return Contention(
        num_blocks=sum(report.num_blocks for report in reports),
        num_void=sum(report.num_void for report in reports),
        num_noisy=sum(report.num_noisy for report in reports),
        max_foreign_share=max(shares, default=None),
    )


def _last_arms(found: Found, proven: Standing | None) -> tuple[ArmRecord | None, ArmRecord | None]:
    """Return what the original and the plan did in the last set; None: it failed there, or nothing is proven."""
    if proven is None:
        return (None, None)
    order, record = found.confirmer.sets.of(proven.plan)[-1]
    return record.arm(0), record.arm(order.plans.index(proven.plan))


def _how(found: Found, proven: Standing | None) -> str:
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
    least_s, most_s = found.runner.originals.range_s
    if most_s <= CHANGED * least_s:
        return ""
    return (
        f"; your program as it is took {duration(least_s)} to {duration(most_s)} a step from set to set: what is "
        "gained may be another at other times"
    )
