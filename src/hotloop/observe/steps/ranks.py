"""What one training process did: its step, its phases, its rates."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from hotloop.model.observation import Anchor, Phase, PhaseTime, RankObservation, StepTime
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.rates import rates
from hotloop.observe.steps.rhythm import fold, in_loop_order
from hotloop.observe.steps.step_windows import WITHIN, Window, windows
from hotloop.stats.steady import steady_from
from hotloop.stats.summary import summarize

MIN_STEPS = 3
"""Fewer steps than this are reported, but without warm-up taken off."""


def steady_windows(timeline: Timeline, anchor: Anchor) -> list[Window]:
    """Return the regular steps after warm-up, up to where the first profiler was put to use."""
    until_s = min((deep.begin_s for deep in timeline.deep), default=float("inf"))
    regular = [window for window in windows(timeline, anchor) if window.regular and window.end_s <= until_s]
    if len(regular) < 2 * MIN_STEPS:
        return regular
    start = steady_from([window.duration_s for window in regular])
    return regular[min(start, len(regular) - MIN_STEPS) :]


def measured_s(timeline: Timeline, steady: Sequence[Window]) -> float:
    """Return the time of the steps after warm-up, of those between that were not timed by phase too."""
    if not steady:
        return 0.0
    begin_s, end_s = steady[0].begin_s, steady[-1].end_s
    rests = sum(
        min(rest.end_s, end_s) - rest.begin_s for rest in timeline.lean if begin_s <= rest.begin_s < end_s
    )
    return sum(window.duration_s for window in steady) + rests


def observe_rank(
    timeline: Timeline,
    anchor: Anchor | None,
    facts: dict[str, Any] | None,
    steady: Sequence[Window],
    waited_s: Sequence[float] = (),
) -> RankObservation:
    """Return what this process did; `step` is None where no whole step was seen.

    Args:
        timeline: its record.
        anchor: what ends a step; None: nothing does.
        facts: what the process says of itself; None: nothing.
        steady: the steps that figures are taken from.
        waited_s: of each, what of its backward passes is communication already; empty: nothing.
    """
    role = "idle" if not steady else "infer" if anchor and anchor.infers else "train"
    facts = facts or {}
    return RankObservation(
        rank=facts.get("rank"),
        pid=timeline.pid,
        role=role,
        step=_step(timeline, steady, facts, anchor) if steady and anchor else None,
        phases=phases_of_rank(steady, facts, waited_s),
        other=_other(steady),
        evaluated=_evaluated(steady) if role == "train" else None,
        peak_bytes=facts.get("device_peak_bytes") or facts.get("host_peak_bytes"),
        page_faults=facts.get("page_faults"),
    )


def phases_of_rank(
    steady: Sequence[Window], facts: dict[str, Any], waited_s: Sequence[float]
) -> dict[Phase, PhaseTime]:
    """Return the phases of steps; arguments are those of `observe_rank`.

    Shares are of the summed time, so that they add up to 1; a phase that never occurred is left out.
    """
    total = sum(window.duration_s for window in steady)
    if not total:
        return {}
    exposed, waited = _exposed(facts), waited_s or [0.0] * len(steady)
    split = [_without_wait(window.phases, exposed, own) for window, own in zip(steady, waited, strict=True)]
    sums = {phase: sum(phases[phase] for phases in split) for phase in Phase}
    return {
        phase: _phase([phases[phase] for phases in split], max(0.0, spent) / total)
        for phase, spent in sums.items()
        if spent > 0
    }


def _exposed(facts: dict[str, Any]) -> float:
    """Return the share of a step's backward passes in which they wait for other ranks, as DDP measured it; 0: unknown.

    What it measured is of a pass that it reduces after. With a share r of such passes, of which each takes c to compute
    and a part p of it all to wait, they wait c p / (1 - p), and all passes compute c.
    """
    sampled: Sequence[float] = facts.get("exposed_communication") or (0.0,)
    reduced: float | None = facts.get("reduced")
    part, of = median(sampled), 1.0 if reduced is None else reduced
    return of * part / (1.0 - part + of * part) if part * of else 0.0


def _step(timeline: Timeline, steady: Sequence[Window], facts: dict[str, Any], anchor: Anchor) -> StepTime:
    summary = summarize([window.duration_s for window in steady])
    loaders = facts.get("loaders", ())
    samples, tokens = rates(timeline, steady, loaders, generates=anchor.kind == "request")
    middle = sorted(steady, key=lambda window: len(window.tokens))[len(steady) // 2]
    return StepTime(
        num=len(steady),
        median_s=summary.median_s,
        low_s=summary.low_s,
        high_s=summary.high_s,
        p50_s=summary.p50_s,
        p95_s=summary.p95_s,
        p99_s=summary.p99_s,
        mean_s=sum(window.duration_s for window in steady) / len(steady),
        samples_per_s=samples,
        tokens_per_s=tokens,
        rhythm=fold(in_loop_order(middle.tokens)),
    )


def _evaluated(steady: Sequence[Window]) -> PhaseTime | None:
    samples = [window.evaluated_s for window in steady]
    return (
        _phase(samples, sum(samples) / sum(window.duration_s for window in steady)) if any(samples) else None
    )


def _other(steady: Sequence[Window]) -> dict[str, PhaseTime]:
    """Return what of the rest has a name; it never is more than the rest."""
    total = sum(window.duration_s for window in steady)
    named = {}
    for kind, name in WITHIN.items():
        samples = [min(window.parts.get(kind, 0.0), window.phases[Phase.OTHER]) for window in steady]
        if any(samples):
            named[name.removeprefix("step_").removesuffix("_s")] = _phase(samples, sum(samples) / total)
    return named


def _phase(samples_s: Sequence[float], share: float) -> PhaseTime:
    summary = summarize(samples_s)
    return PhaseTime(summary.median_s, share, summary.low_s, summary.high_s)


def _without_wait(phases: dict[Phase, float], exposed: float, waited_s: float) -> dict[Phase, float]:
    """Take the wait out of backward passes from which some of it has been taken already."""
    left_s = phases[Phase.BACKWARD]
    wait_s = min(left_s, max(0.0, exposed * (left_s + waited_s) - waited_s))
    return {
        **phases,
        Phase.BACKWARD: left_s - wait_s,
        Phase.COMMUNICATION: phases[Phase.COMMUNICATION] + wait_s,
    }
