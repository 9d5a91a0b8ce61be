"""The comparison of two programs: which is faster, phase by phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

import msgspec

from hotloop.model.comparison import Comparison, PhaseChange, Side
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration, percent
from hotloop.model.ratio import Ratio
from hotloop.model.secrets import redacted_words
from hotloop.stats.pairs import ratio_interval
from hotloop.stats.quietness import FAIR_SHARE, is_too_busy
from hotloop.stats.runs import run_of_interval, runs_ratio
from hotloop.stats.verdict import MIN_MARGIN, Decision, Verdict
from hotloop.tune.compare.pairs import MIN_PAIRS, PairRecord, pairs
from hotloop.tune.compare.program import Program
from hotloop.tune.design.elapsed import elapsed_step_s

LEAST_PHASE = 0.002
"""Of the step: of a shorter phase no ratio is told."""
SAME_WORK = 0.05
"""Of the tokens of a step: by so much a last batch that is smaller changes their mean."""
_DUET = "{num} fresh pairs of processes, whose blocks took turns on this machine; 95% interval over pairs and blocks"
_APART = (
    "two runs that did not take turns; the 95% interval holds what runs of one program differ by, not what the machine "
    "did meanwhile: hotloop compare with both commands measures them side by side"
)


def compare_programs(
    before: Program,
    after: Program,
    *,
    floor: float,
    limit_s: float,
    progress: Callable[[str], None],
    pairs: Callable[..., tuple[list[PairRecord], Decision]] = pairs,
) -> Comparison:
    """Run two programs in turns and return which is faster.

    Args:
        before: the first.
        after: the second.
        floor: relative difference below which nothing is claimed.
        limit_s: no pair is begun that would end after it.
        progress: told of what goes on.
        pairs: runs fresh pairs of them.

    Raises:
        HotloopError: one failed.
    """
    per, scale = _basis(*(_observed(one.observation, one.name) for one in (before, after)))
    records, found = pairs((before, after), floor, limit_s, progress, scale=scale)
    sides = [_side(one, records, at) for at, one in enumerate((before, after))]
    if found.ratio is not None and sides[0].step_s is not None:
        # By pairs, not by the medians of both: beside others those may be far apart where the pairs are not.
        step_s = scale * sides[0].step_s / found.ratio.ratio
        sides[1] = msgspec.structs.replace(sides[1], step_s=step_s)
    names = dict.fromkeys((*sides[0].phases, *sides[1].phases))
    verdict, reason = _told_alone(found, (before, after), records)
    return Comparison(
        before=sides[0],
        after=sides[1],
        ratio=found.ratio,
        verdict=verdict.value,
        per=per,
        scale=scale,
        reason=_told(reason, sides, per),
        phases={name: _phase(records, sides, name, scale) for name in names},
        rounds=tuple(record.rounds for record in records),
        method=_DUET.format(num=len(records)),
        foreign_share=_most(record.foreign_share for record in records),
    )


def _told_alone(
    found: Decision, both: Sequence[Program], records: Sequence[PairRecord]
) -> tuple[Verdict, str]:
    """Return the verdict; what neighbours have made of a program does not tell what it is when it is alone."""
    disturbed = [record for record in records if record.foreign_share is not None]
    if found.ratio is None or found.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return found.verdict, found.reason
    for at, one in enumerate(both):
        beside_s = median([times[at] for record in disturbed for times in record.rounds] or [0.0])
        usual_s = elapsed_step_s(one.observation)
        if beside_s > FAIR_SHARE * usual_s and 2 * len(disturbed) > len(records):
            return Verdict.INCONCLUSIVE, (
                f"{found.ratio.ratio:.3f} [{found.ratio.low:.3f}, {found.ratio.high:.3f}], but the machine was "
                f"disturbed: {one.name} took {duration(beside_s)} a step, {duration(usual_s)} otherwise, so no "
                "difference is proven"
            )
    return found.verdict, found.reason


def _side(one: Program, records: Sequence[PairRecord], at: int) -> Side:
    times = [block[at] for record in records for block in record.rounds]
    names = dict.fromkeys(name for record in records for name in record.phases[at])
    return Side(
        name=one.name,
        command=redacted_words(one.words),
        step_s=median(times),
        phases={name: median(record.phases[at].get(name, 0.0) for record in records) for name in names},
        peak_bytes=max((record.peak_bytes[at] or 0 for record in records), default=0) or None,
        tree=max(
            (tree for record in records if (tree := record.trees[at]) is not None),
            key=lambda tree: tree.peak_bytes,
            default=None,
        ),
        **_contents(one.observation),
    )


def _phase(records: Sequence[PairRecord], sides: Sequence[Side], name: str, scale: float) -> PhaseChange:
    before, after = (side.phases.get(name) for side in sides)
    logs = [
        math.log(scale * record.phases[0][name] / record.phases[1][name])
        for record in records
        if record.phases[0].get(name) and record.phases[1].get(name)
    ]
    long = max(before or 0.0, after or 0.0) > LEAST_PHASE * (sides[0].step_s or math.inf)
    # One value a pair: its spread within the pair is not known, that between pairs is what counts.
    told = ratio_interval([[one] * 3 for one in logs]) if len(logs) >= MIN_PAIRS and long else None
    return PhaseChange(before_s=before, after_s=after, ratio=told)


def compare_observations(before: Observation, after: Observation, names: tuple[str, str]) -> Comparison:
    """Return what two observations of different times allow to say."""
    sides = [_observed(seen, name) for seen, name in zip((before, after), names, strict=True)]
    per, scale = _basis(*sides)
    ratio = _ratio(sides[0], sides[1], scale)
    busy = _most(seen.foreign_share for seen in (before, after))
    verdict, reason = _verdict(ratio, busy)
    return Comparison(
        before=sides[0],
        after=sides[1],
        ratio=ratio,
        verdict=verdict.value,
        per=per,
        scale=scale,
        reason=_told(reason, sides, per) if ratio is not None else reason,
        phases={
            phase.value: PhaseChange(
                before_s=before.phases[phase].median_s if phase in before.phases else None,
                after_s=after.phases[phase].median_s if phase in after.phases else None,
                ratio=_phase_apart(before, after, phase, scale),
            )
            for phase in dict.fromkeys((*before.phases, *after.phases))
        },
        method=_APART,
        foreign_share=busy,
    )


def _most(shares: Iterable[float | None]) -> float | None:
    return max((share for share in shares if share is not None), default=None)


def _observed(seen: Observation, name: str) -> Side:
    step = seen.step
    return Side(
        name=name,
        command=redacted_words(seen.command),
        step_s=step.median_s if step else None,
        low_s=step.low_s if step else None,
        high_s=step.high_s if step else None,
        phases={phase.value: found.median_s for phase, found in seen.phases.items()},
        peak_bytes=seen.memory.peak_bytes,
        tree=seen.memory.tree,
        **_contents(seen),
    )


def _contents(seen: Observation) -> dict[str, Any]:
    """Return the size of the batches, and the tokens of a step, where they were seen."""
    step = seen.step
    loader = next((one for one in seen.program.loaders if one.used_in_step), None)
    return {
        "batch_size": loader.batch_size if loader else None,
        "tokens_per_step": step.tokens_per_s * step.whole_s if step and step.tokens_per_s else None,
    }


def _basis(before: Side, after: Side) -> tuple[str, float]:
    """Return what is compared, and how many of it a step of the second has for each of the first.

    It is a step wherever the loaders' batches have one size: a program that does more with them has become slower.
    """
    if not before.batch_size or not after.batch_size or before.batch_size == after.batch_size:
        return "step", 1.0
    if before.tokens_per_step and after.tokens_per_step:
        scale = after.tokens_per_step / before.tokens_per_step
        return ("step", 1.0) if abs(math.log(scale)) < SAME_WORK else ("token", scale)
    return "sample", after.batch_size / before.batch_size


def _told(reason: str, sides: Sequence[Side], per: str) -> str:
    if per == "step":
        return reason
    before, after = (
        f"{(side.tokens_per_step if per == 'token' else side.batch_size) or 0:,.0f}" for side in sides
    )
    return f"per {per}, as a step has {before} of them and {after}: {reason}"


def _ratio(before: Side, after: Side, scale: float) -> Ratio | None:
    if not before.step_s or not after.step_s or before.low_s is None or after.low_s is None:
        return None
    assert before.high_s is not None
    assert after.high_s is not None
    return runs_ratio(
        [run_of_interval(before.step_s, before.low_s, before.high_s)],
        [run_of_interval(*(each / scale for each in (after.step_s, after.low_s, after.high_s)))],
    )


def _phase_apart(before: Observation, after: Observation, phase: object, scale: float) -> Ratio | None:
    runs = []
    for seen, per in ((before, 1.0), (after, scale)):
        found = seen.phases.get(phase)  # type: ignore[call-overload]
        if found is None or not found.median_s or found.low_s is None or found.high_s is None:
            return None
        if seen.step is None or found.median_s < LEAST_PHASE * seen.step.median_s:
            return None
        runs.append(run_of_interval(found.median_s / per, found.low_s / per, found.high_s / per))
    return runs_ratio(runs[:1], runs[1:])


def _verdict(ratio: Ratio | None, foreign_share: float | None) -> tuple[Verdict, str]:
    if ratio is None:
        return Verdict.INVALID, "a step was not measured on both sides"
    edge = 1 + MIN_MARGIN
    said = f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    if is_too_busy(foreign_share):
        # Load comes and goes: it differs more between two moments than most programs do.
        return (
            Verdict.INCONCLUSIVE,
            f"{said}, but other processes used {foreign_share:.0%} of the CPU during one of them, so no difference "
            "is proven",
        )
    if ratio.low > edge:
        return Verdict.FASTER, f"{said}, more than the {percent(MIN_MARGIN)} minimum difference"
    if ratio.high < 1 / edge:
        return Verdict.SLOWER, f"{said}, more than the {percent(MIN_MARGIN)} minimum difference"
    why = (
        "includes 1"
        if ratio.low <= 1 <= ratio.high
        else f"may be below the {percent(MIN_MARGIN)} minimum difference"
    )
    return (
        Verdict.INCONCLUSIVE,
        f"{said} {why}, so no difference is proven: two runs of one program differ by as much",
    )
