"""What was found, as the result that is shown and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import Baseline, Compatibility, Contention, Measured, Plan, TuneResult
from hotloop.tune.confirm.confirmation import SET_ROUNDS, Confirmer
from hotloop.tune.confirm.step_status import Confirmation
from hotloop.tune.confirm.waterfall import plan_steps
from hotloop.tune.executor import SetRecord
from hotloop.tune.trials.search import Search
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.chained_sets import total_contention


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session got to; None: it did not get there."""

    candidates: tuple[Candidate, ...]
    refused: tuple[Refusal, ...]
    """Before anything was tried."""
    ground: NoiseBaseline | None
    pairs: tuple[SetRecord, ...]
    search: Search | None
    confirmer: Confirmer | None
    interrupted: bool
    wall_s: float

    @property
    def proven(self) -> Confirmation | None:
        """The plan that held; None: none did."""
        return self.confirmer.proven if self.confirmer else None


def tune_result(observation: Observation, found: Findings) -> TuneResult:
    """Return the result of a session."""
    trials = tuple(found.search.trials) if found.search else ()
    return TuneResult(
        command=observation.command,
        baseline=_baseline(observation),
        floor=found.ground.floor if found.ground else None,
        plan=_plan(observation, found.proven),
        refused=(*found.refused, *_refusals(found)),
        trials=trials,
        peak_bytes=_peaks(found.proven),
        contention=total_contention(list(_contentions(found))),
        confirmation=_how(found.proven),
        wall_s=found.wall_s,
        interrupted=found.interrupted,
    )


def _baseline(observation: Observation) -> Baseline:
    step = observation.step
    assert step is not None, "a program without steps is not tuned"
    assert observation.anchor is not None
    return Baseline(
        step_s=step.median_s,
        low_s=step.low_s,
        high_s=step.high_s,
        samples_per_s=step.samples_per_s,
        peak_bytes=observation.memory.peak_bytes,
        anchor=observation.anchor,
    )


def _plan(observation: Observation, proven: Confirmation | None) -> Plan:
    program = observation.program
    return Plan(
        steps=plan_steps(proven) if proven else (),
        speedup=proven.total.ratio if proven else None,
        parity=proven.parity if proven else None,
        fit=Compatibility(
            machine=observation.machine,
            torch_version=program.torch_version,
            script=program.script,
            script_sha256=program.script_sha256,
            command=observation.command,
        ),
        sites=observation.sites,
    )


def _refusals(found: Findings) -> Sequence[Refusal]:
    """Every candidate that is not in the plan, with the last thing that is known of it."""
    refused = dict(found.search.refused) if found.search else {}
    if found.confirmer:
        refused |= found.confirmer.dropped
    planned = {step.label for step in found.proven.plan} if found.proven else set()
    promising = {step.label for step in found.search.plan} if found.search else set()
    for candidate in found.candidates:
        word = "promising, but interrupted before it was confirmed"
        reason = word if candidate.label in promising else "not tried: interrupted"
        refused.setdefault(candidate.label, Refusal(candidate.label, reason))
    return [refusal for name, refusal in refused.items() if name not in planned]


def _contentions(found: Findings) -> Iterator[Contention]:
    confirmed = found.confirmer.records if found.confirmer else []
    for record in (*found.pairs, *confirmed):
        yield record.contention
    for trial in found.search.trials if found.search else ():
        if isinstance(trial.outcome, Measured):
            yield trial.outcome.contention


def _peaks(proven: Confirmation | None) -> tuple[int | None, int | None]:
    if proven is None:
        return (None, None)
    arms = proven.records[-1].arms
    return (arms[0].peak_bytes, arms[len(proven.plan)].peak_bytes)


def _how(proven: Confirmation | None) -> str:
    if proven is None:
        return "no plan held, so there is no number to quote"
    return (
        f"{len(proven.records)} sets of fresh processes, each {SET_ROUNDS} blocks an arm in ABBA order; "
        "95% interval over sets and blocks, valid at every look"
    )
