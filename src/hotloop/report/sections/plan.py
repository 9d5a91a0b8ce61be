"""What made it faster: the waterfall, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from operator import mul

from hotloop.model.optimization import Candidate
from hotloop.model.quantities import counted
from hotloop.model.tuning import LikelyPlan, PlanStep, Trial, TuneResult
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import label, speedup
from hotloop.report.content.short_run import short_run
from hotloop.report.document import Block, Chart, Details, Facts, Note, Section, Table

MAX_REFUSED = 6
"""In the chart; the table below has all."""


def plan(content: ReportContent) -> Section | None:
    """Return the section; None: nothing was tuned."""
    tuning = content.tuning
    if tuning is None:
        return None
    blocks: list[Block] = []
    if tuning.plan.steps and tuning.plan.speedup is not None:
        blocks.append(_waterfall(tuning))
        short = short_run(tuning.baseline)
        blocks += [Note(f"{short[0].upper()}{short[1:]}.")] if short else []
        blocks += [Note(f"Caution: {step.caution}.") for step in tuning.plan.steps if step.caution]
    blocks += [_likely(one) for one in tuning.likely]
    if tuning.refused:
        blocks.append(_refused(tuning))
    return Section(anchor="plan", title="What to change", lead=_lead(tuning), blocks=tuple(blocks))


def _lead(tuning: TuneResult) -> str:
    if not tuning.plan.steps:
        return "Nothing. The program stays as it is: no change was proven to help."
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


def _waterfall(tuning: TuneResult) -> Chart:
    steps, confirmed = tuning.plan.steps, tuning.plan.speedup
    assert confirmed is not None
    totals = list(accumulate((step.ratio for step in steps), mul))
    tried = list(_tried_and_refused(tuning))[:MAX_REFUSED]
    rows = [("as it was", "", "1.00x", "")]
    rows += [
        (label(step.name, step.params), speedup(step), f"{total:.2f}x", step.numerics.value)
        for step, total in zip(steps, totals, strict=True)
    ]
    rows.append(("confirmed against the original", "", speedup(confirmed), ""))
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
        table=Table(("change", "factor", "total", "numerics"), tuple(rows), figures=(1, 2)),
        height=64 + 42 * (len(steps) + 2 + len(tried)),
    )


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
        "word": trial.decision.partition(":")[0],
        "reason": trial.decision,
    }


def _short(candidate: Candidate) -> str:
    """Return a name that fits beside its bar: two of one name differ in a word of their parameters."""
    words = [value for value in candidate.params.values() if isinstance(value, str)]
    return " ".join((candidate.name, *words))


def _likely(one: LikelyPlan) -> Details:
    """What was promising and could not be proven in time: apart from the plan."""
    names = " + ".join(label(step.name, step.params) for step in one.steps)
    said = f"{one.ratio:.2f}x [{one.low:.2f}, {one.high:.2f}]"
    rows = (
        ("changes", names),
        ("seen so far", f"{said}, not proven"),
        ("missing", one.reason),
        ("go on", one.resume),
    )
    return Details(f"Likely, not proven: {said} with {names}", (Facts(rows),), badge="likely")


def _refused(tuning: TuneResult) -> Block:
    rows = tuple((one.name, one.reason) for one in tuning.refused)
    num = counted(len(rows), "other" if tuning.plan.steps else "candidate")
    title = f"Not in the plan: {num}, each with its reason"
    note = Note("A change that could not be proven is left out, however promising it looked.")
    return Details(title, (note, Table(("change", "why not"), rows)), anchor="refused")
