"""What made it faster: the waterfall, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import mul

from hotloop.model.optimization import NOT_ASKED, Candidate, Refusal
from hotloop.model.quantities import counted
from hotloop.model.tuning import LikelyPlan, PlanStep, Trial, TuneResult
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import NOT_MEASURED, label, speedup
from hotloop.report.content.short_run import short_run
from hotloop.report.document import Block, Chart, Details, Facts, More, Note, Section, Table

MAX_REFUSED = 6
"""In the chart; the table below has all."""
DOES_NOT_APPLY = "does not apply"
"""How the reason of a refusal begins that no trial could change."""


def plan(content: ReportContent) -> Section | None:
    """Return the section; None: nothing was tuned."""
    tuning = content.tuning
    if tuning is None:
        return None
    blocks: list[Block] = []
    if tuning.plan.steps and tuning.plan.speedup is not None:
        blocks.append(waterfall(tuning))
        short = short_run(tuning.baseline)
        blocks += [Note(f"{short[0].upper()}{short[1:]}.")] if short else []
        blocks += [Note(f"Caution: {step.caution}.") for step in tuning.plan.steps if step.caution]
    blocks += [block for one in tuning.likely for block in likely(one)]
    blocks += not_in_plan(tuning)
    return Section(anchor="plan", title="What to change", lead=_lead(tuning), blocks=tuple(blocks))


def _lead(tuning: TuneResult) -> str:
    if not tuning.plan.steps:
        what = "to reach the goal" if tuning.aim.counts_memory else "faster"
        return f"Nothing: no change was proven {what}, so the program stays as it is."
    names = [step.name for step in tuning.plan.steps]
    them, factors = (
        ("them", " Each factor below is of that change on top of those before it.")
        if len(names) > 1
        else ("it", "")
    )
    return (
        f"Switch on {', then '.join(names)}: hotloop run starts your command with {them}, hotloop patch --write puts "
        f"{them} into your source.{factors}"
    )


def waterfall(tuning: TuneResult, *, parameters: bool = True) -> Chart | Table:
    """Return the plan step by step; it has to have some. Where memory counts each step's memory stands beside its time.

    Args:
        tuning: the result.
        parameters: name those of each step, too.
    """
    steps, confirmed = tuning.plan.steps, tuning.plan.speedup
    assert confirmed is not None
    if tuning.aim.counts_memory:
        return _time_and_memory(steps, parameters=parameters)
    totals = list(accumulate((step.ratio for step in steps), mul))
    tried = list(_tried_and_refused(tuning))[:MAX_REFUSED]
    rows = [("as it was", "", "1.00x", "")]
    rows += [
        (
            label(step.name, step.params if parameters else {}),
            speedup(step),
            f"{total:.2f}x",
            step.numerics.value,
        )
        for step, total in zip(steps, totals, strict=True)
    ]
    rows.append(("confirmed", speedup(confirmed), f"{confirmed.ratio:.2f}x", ""))
    return Chart(
        kind="waterfall",
        title="From the program as it was to the plan",
        summary=f"{counted(len(steps), 'change takes', 'changes take')} the program from 1.00x to "
        f"{speedup(confirmed)}.",
        data={
            "steps": [_bar(step, total) for step, total in zip(steps, totals, strict=True)],
            "confirmed": [confirmed.ratio, confirmed.low, confirmed.high],
            "refused": [_refused_bar(one) for one in tried],
        },
        table=Table(
            ("change", "factor", "total", "numerics"),
            tuple(rows),
            figures=(1, 2),
            bars=(1.0, *totals, confirmed.ratio),
        ),
    )


def _time_and_memory(steps: Sequence[PlanStep], *, parameters: bool) -> Table:
    """Return what each step makes of the peak and of the speed, beside the others."""
    rows = [
        (
            label(step.name, step.params if parameters else {}),
            f"{1 / step.memory_ratio - 1:+.0%}" if step.memory_ratio is not None else NOT_MEASURED,
            speedup(step),
            step.numerics.value,
        )
        for step in steps
    ]
    return Table(("change", "peak", "speed", "numerics"), tuple(rows), figures=(1, 2))


def _bar(step: PlanStep, total: float) -> dict[str, object]:
    before = total / step.ratio
    return {
        "name": step.name,
        "from": before,
        "to": total,
        "low": before * step.low,
        "high": before * step.high,
        "factor": speedup(step),
    }


def _tried_and_refused(tuning: TuneResult) -> Iterable[Trial]:
    """Return the last trial of each candidate that is not in the plan; those that failed have no ratio."""
    on = {step.name for step in tuning.plan.steps}
    return {one.candidate.label: one for one in tuning.trials if one.candidate.name not in on}.values()


def _refused_bar(trial: Trial) -> dict[str, object]:
    """Its ratio is against the plan as it was then, so it stands apart from the waterfall, from 1."""
    ratio = trial.ratio
    return {
        "name": _short(trial.candidate),
        "ratio": ratio.ratio if ratio else None,
        "low": ratio.low if ratio else 1.0,
        "high": ratio.high if ratio else 1.0,
        # What was accepted then, and left the plan again, is not accepted now.
        "word": "in its trial" if trial.decision == "accepted" else trial.decision.partition(":")[0],
        "reason": trial.decision,
    }


def _short(candidate: Candidate) -> str:
    """Return a name that fits beside its bar: two of one name differ in a word of their parameters."""
    words = [value for value in candidate.params.values() if isinstance(value, str)]
    return " ".join((candidate.name, *words))


def likely(one: LikelyPlan) -> Iterator[Block]:
    """Yield what was promising and could not be proven in time: apart from the plan."""
    names = " + ".join(label(step.name, step.params) for step in one.steps)
    said = f"{one.ratio:.2f}x [{one.low:.2f}, {one.high:.2f}]"
    yield Details(
        f"Likely, not proven: {said} with {names}",
        (Facts((("missing", one.reason), ("continue", one.resume))),),
        badge="likely",
    )


def not_in_plan(tuning: TuneResult) -> Iterator[Block]:
    """Yield every other optimization with its reason; of those asked for by name the reason stands in short, too."""
    asked = [one for one in tuning.refused if one.reason != NOT_ASKED]
    if not asked:
        return
    table = Table(("change", "why not"), tuple(_by_reason(asked)))
    if len(asked) < len(tuning.refused):
        yield Facts(
            tuple((("left out" * (not at)), f"{name}: {why}") for at, (name, why) in enumerate(table.rows))
        )
        return
    num = counted(len(asked), "optimization")
    absent = sum(one.reason.startswith(DOES_NOT_APPLY) for one in asked)
    do = f", {absent} of them not applicable here" if absent else ""
    folded = Details(f"Not in the plan: {num}, each with its reason", (table,), anchor="refused")
    yield More((folded,), instead=(Facts((("left out", f"{num}{do}: see --verbose or the report"),)),))


def _by_reason(refused: Sequence[Refusal]) -> Iterator[tuple[str, str]]:
    """Several optimizations with the same reason are one row, at the place of the first."""
    groups: dict[str, list[str]] = {}
    for one in refused:
        groups.setdefault(one.reason, []).append(one.name)
    for reason, names in groups.items():
        if len(names) == 1:
            yield names[0], reason
        else:
            yield counted(len(names), "optimization"), f"{reason}: {', '.join(names)}"
