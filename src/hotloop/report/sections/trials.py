"""Every trial with its raw samples, and what was predicted of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hotloop.model.quantities import byte_size, counted, duration, percent
from hotloop.model.tuning import Choice, Measured, Switched, Trial
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import speedup
from hotloop.report.content.prediction_error import prediction_error, with_prediction
from hotloop.report.document import Block, Chart, Code, Details, Facts, Note, Section, Table
from hotloop.report.sections.holds import MAX_SAMPLES, holds


def predictions(content: ReportContent) -> Section | None:
    """Return the section of predictions against measurements; None: nothing that was predicted was tried alone."""
    trials = content.tuning.trials if content.tuning else ()
    both = with_prediction(trials)
    if not both:
        return None
    return Section(
        anchor="predictions",
        title="Predictions against measurements",
        lead=f"Predictions only order the trials and are never quoted as gains. {_error(trials)}".strip(),
        blocks=(_scatter(both),),
    )


def _error(trials: Sequence[Trial]) -> str:
    said = prediction_error(trials)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _scatter(both: Sequence[Trial]) -> Chart:
    rows, points = [], []
    for one in both:
        assert one.predicted is not None
        assert one.ratio is not None
        rows.append((one.candidate.label, speedup(one.predicted), speedup(one.ratio)))
        points.append(
            {
                "name": one.candidate.label,
                "predicted": [one.predicted.ratio, one.predicted.low, one.predicted.high],
                "measured": [one.ratio.ratio, one.ratio.low, one.ratio.high],
            }
        )
    return Chart(
        kind="predictions",
        title="Predicted and measured gain",
        summary=f"{len(both)} trials against the program as it was; on the diagonal a prediction was right.",
        data={"points": points},
        table=Table(("candidate", "predicted", "measured"), tuple(rows), figures=(1, 2)),
    )


def trials(content: ReportContent) -> Section | None:
    """Return the section of all trials; None: nothing was tuned."""
    tuning = content.tuning
    if tuning is None or not (tuning.trials or content.sets):
        return None
    blocks = [
        *_choices(tuning.choices),
        *_confirmation(content),
        *(_trial(content, one, number) for number, one in enumerate(tuning.trials)),
    ]
    return Section(
        anchor="trials",
        title="Every trial, with its raw samples",
        lead=f"{len(tuning.trials)} trials in {duration(tuning.wall_s)}. A sample is one block of steps of the "
        "program as it was, over the block beside it with the change on; of a knob that was switched it is a hold.",
        blocks=tuple(blocks),
    )


def _choices(choices: Sequence[Choice]) -> Iterator[Block]:
    if not choices:
        return
    rows = tuple((duration(one.at_s), one.why) for one in choices)
    yield Details(
        f"What was done next, and why: {counted(len(choices), 'decision')}",
        (Table(("after", "decision"), rows, figures=(0,)),),
        anchor="decisions",
    )


def _confirmation(content: ReportContent) -> Iterator[Block]:
    tuning = content.tuning
    if not content.sets or tuning is None or not tuning.plan.steps:
        return
    pairs = [[times[0] / times[-1] for times in one.rounds] for one in content.sets]
    rows = tuple(
        (str(number + 1), str(at + 1), duration(times[0]), duration(times[-1]))
        for number, one in enumerate(content.sets)
        for at, times in enumerate(one.rounds)
    )
    table = Table(("set", "round", "as it was", "with the plan"), rows[:MAX_SAMPLES], figures=(2, 3))
    yield Details(
        f"The confirmation: {counted(len(content.sets), 'set')} of fresh processes{_left_out(content)}",
        (Note(tuning.confirmation), _blocks("The plan against the original", pairs), table),
        anchor="confirmation",
        badge="proof",
    )


def _left_out(content: ReportContent) -> str:
    """Say of how many of the sets that are shown the final number is, where it is not of all."""
    num = content.tuning.num_sets if content.tuning else None
    if num is None or num == len(content.sets):
        return ""
    return f", {num:,} of which the figure is of: the others were beside other processes"


def _trial(content: ReportContent, one: Trial, number: int) -> Details:
    found = one.outcome
    ratio = f" · {speedup(one.ratio)}" if one.ratio is not None else ""
    title = f"{one.candidate.label}{ratio}"
    anchor = f"trial-{number + 1}"
    facts = [
        ("decision", one.decision),
        ("beside", " + ".join(step.label for step in one.incumbent) or "nothing else"),
    ]
    facts.append(("took", duration(one.seconds)))
    if one.method:
        facts.append(("method", one.method))
    if isinstance(found, Switched):
        facts.append(("seen to act", found.evidence))
        facts.append(
            (
                "held",
                f"{found.num_holds} patterns of knobs, {found.settle_steps} steps after a switch left out",
            )
        )
        badge = "accepted" if one.decision == "accepted" else "refused"
        process = one.key.removesuffix(f"|{one.candidate.label}")
        raw = holds(one.candidate.label, content.held.get(process, ()))
        return Details(title, (Facts(tuple(facts)), *raw), anchor=anchor, badge=badge)
    if not isinstance(found, Measured):
        facts.append(("failed", f"{found.kind.value}: {found.message}"))
        blocks: list[Block] = [Facts(tuple(facts))]
        if found.log_end:
            blocks.append(Code(found.log_end))
        return Details(title, tuple(blocks), anchor=anchor, badge="failed")
    facts += _measured(found)
    pairs = [[math.exp(value) for value in pair if math.isfinite(value)] for pair in found.pairs]
    rows = tuple(
        (str(at + 1), str(block + 1), f"{value:.4f}")
        for at, pair in enumerate(pairs)
        for block, value in enumerate(pair)
    )
    table = Table(("pair", "block", "ratio"), rows[:MAX_SAMPLES], figures=(0, 1, 2))
    badge = "accepted" if one.decision == "accepted" else "refused"
    return Details(title, (Facts(tuple(facts)), _blocks("Samples", pairs), table), anchor=anchor, badge=badge)


def _measured(found: Measured) -> Iterator[tuple[str, str]]:
    before, after = found.step_s
    if math.isfinite(before) and math.isfinite(after):
        yield "step, without and with", f"{duration(before)} and {duration(after)}"
    for effect in found.effects:
        yield "seen to act" if effect.on else "did not act", effect.evidence
    if found.parity is not None:
        yield "learning", ("the same: " if found.parity.passed else "not the same: ") + found.parity.evidence
    if found.one_off_s is not None and math.isfinite(found.one_off_s):
        yield "one-off cost", duration(found.one_off_s)
    low, high = found.peak_bytes
    if low is not None and high is not None:
        yield "memory, without and with", f"{byte_size(low)} and {byte_size(high)}"
    load = found.contention
    most = (
        f", other processes used up to {percent(load.max_foreign_share)} of the CPU"
        if load.max_foreign_share is not None
        else ""
    )
    yield "blocks", f"{load.num_blocks}, {load.num_void} repeated, {load.num_noisy} kept noisy{most}"


def _blocks(title: str, pairs: Sequence[Sequence[float]]) -> Chart:
    num = sum(map(len, pairs))
    return Chart(
        kind="blocks",
        title=title,
        summary=f"{num} blocks of {len(pairs)} pair{'s' * (len(pairs) != 1)} of processes; above 1 is faster.",
        data={"pairs": [[round(value, 4) for value in pair] for pair in pairs]},
    )
