"""The result of tuning as text, at 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.quantities import counted, duration, listed, percent, rate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import RESUME_BUDGET, Contention, Plan, PlanStep, TuneResult
from hotloop.report.content.short_run import short_run
from hotloop.report.content.tree_memory import memory_told
from hotloop.report.terminal.layout import facts, next_steps
from hotloop.report.terminal.not_proven import NAME_WIDTH, likely, refused
from hotloop.report.terminal.prediction_error import prediction_error
from hotloop.stats.empty_plan import why_empty
from hotloop.stats.quietness import MANY_DISTURBED

BAR = 22
"""Columns of the waterfall's longest bar; with name, factor, interval and total a line is 80 wide."""


def render(result: TuneResult, *, verbose: bool = False) -> RenderableType:
    """Return the whole result, ready to print.

    Args:
        result: what was found.
        verbose: give the reason of everything that does not apply, too.
    """
    return Group(*_parts(result, verbose=verbose))


def render_next(result: TuneResult, plan: str | None) -> RenderableType:
    """Return what to type next.

    Args:
        result: what was found.
        plan: the plan's file; None: the one that is looked for first.
    """
    option = ["--plan", plan] if plan else []
    if not result.plan.steps:
        longer = ["--budget", RESUME_BUDGET] if result.likely else []
        resume = ["hotloop", "tune", "--resume", *longer, *option, *result.command]
        likely_one = [("run what is likely, unproven", ["hotloop", "run", "--likely", *result.command])]
        return next_steps(
            [
                ("go on where this ended", resume),
                *(likely_one if result.likely else []),
                ("see what holds it back", ["hotloop", "diagnose", *result.command]),
            ]
        )
    return next_steps(
        [
            ("run it for real", ["hotloop", "run", *option, *result.command]),
            ("the plan in your source, as a diff", ["hotloop", "patch", *([plan] if plan else [])]),
            ("the manual of a step", ["hotloop", "explain", result.plan.steps[0].name]),
        ]
    )


def what_is_on(plan: Plan) -> str:
    """Return a plan in one line: what is on, and what that was measured to bring."""
    if not plan.steps:
        return "the plan is empty: nothing is on"
    names = ", ".join(_step_name(step) for step in plan.steps)
    return f"on: {names}" + (f" ({plan.speedup.ratio:.2f}x when it was proven)" if plan.speedup else "")


def _step_name(step: PlanStep) -> str:
    params = " ".join(f"{key}={value}" for key, value in sorted(step.params.items()))
    return f"{step.name} ({params})" if params else step.name


def _parts(result: TuneResult, *, verbose: bool) -> Iterator[RenderableType]:
    yield from _busy(result.contention)
    yield Text(_verdict(result), style="bold")
    yield Text("")
    short = short_run(result.baseline) if result.plan.steps else None
    yield facts([("baseline", _baseline(result)), *([("run", short)] if short else [])])
    yield Text("")
    if result.plan.steps and result.plan.speedup is not None:
        yield _waterfall(result.plan.steps, result.plan.speedup)
        yield Text("")
        yield facts(_proof(result))
        yield Text("")
    yield from likely(result.likely)
    yield from refused(result.refused, verbose=verbose)
    yield facts(_how(result))


def _verdict(result: TuneResult) -> str:
    speedup = result.plan.speedup
    if result.plan.steps and speedup is not None:
        interval = f"[{speedup.low:.2f}, {speedup.high:.2f}]"
        return f"{speedup.ratio:.2f}x as fast {interval}, proven in fresh processes, with {_changes(result)}."
    return f"No change was proven faster: {why_empty(result)}."


def _changes(result: TuneResult) -> str:
    return counted(len(result.plan.steps), "change")


def _busy(load: Contention) -> Iterator[RenderableType]:
    """A machine that others used is said first: it is why little could be proven."""
    disturbed = load.num_disturbed
    if disturbed <= MANY_DISTURBED * load.num_blocks:
        return
    used = load.max_foreign_share
    share = f", up to {used:.0%} of the CPU" if used is not None else ""
    yield Text(
        f"Other processes used this machine meanwhile{share}: they disturbed {counted(disturbed, 'measurement')} of "
        f"{load.num_blocks:,}, so less could be tried. Stop them and tune again.",
        style="bold yellow",
    )
    yield Text("")


def _baseline(result: TuneResult) -> str:
    base = result.baseline
    per_s = f"{rate(base.samples_per_s)} samples/s" if base.samples_per_s is not None else ""
    median = f"{duration(base.step_s)} median step [{duration(base.low_s)}, {duration(base.high_s)}]"
    if base.mean_s is None:
        return "; ".join(filter(None, (median, per_s and f"{per_s} on average")))
    return "; ".join(filter(None, (f"{duration(base.mean_s)} mean step", per_s, median)))


def _waterfall(steps: tuple[PlanStep, ...], speedup: Ratio) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(max_width=NAME_WIDTH, overflow="fold")
    for justify in ("right", "left", "right", "left"):
        table.add_column(justify="right" if justify == "right" else "left", no_wrap=True)
    totals = [1.0]
    for step in steps:
        totals.append(totals[-1] * step.ratio)
    columns = BAR / max(totals)
    table.add_row("as it was", "", "", Text("1.00x"), _bar(columns))
    for step, total in zip(steps, totals[1:], strict=True):
        table.add_row(
            _label(step),
            Text(f"x{step.ratio:.2f}"),
            _interval(step),
            Text(f"{total:.2f}x"),
            _bar(total * columns),
        )
    whole = Text(f"{speedup.ratio:.2f}x", style="bold")
    table.add_row(Text("confirmed", style="bold"), "", _interval(speedup), whole, "")
    return table


def _interval(ratio: Ratio | PlanStep) -> Text:
    """As text, not as markup: brackets mean styles there."""
    return Text(f"[{ratio.low:.2f}, {ratio.high:.2f}]")


def _label(step: PlanStep) -> Text:
    text = Text(step.name)
    for key, value in sorted(step.params.items()):
        text.append(f"\n  {shown(f'{key}={value}')}", style="dim")
    return text


def _bar(columns: float) -> Text:
    return Text("█" * max(1, round(columns)), style="green")


def _proof(result: TuneResult) -> Iterator[tuple[str, str]]:
    parity = result.plan.parity
    if parity is not None:
        compared = parity.passed and parity.statistic is not None
        what, unit = ("outputs", "forwards") if parity.compared == "outputs" else ("learning", "steps")
        verdict = f"the same, {parity.num_steps} {unit} compared" if compared else "not measured"
        yield what, f"{verdict}: {parity.evidence}"
    key = "memory"
    for said in memory_told(result):
        yield key, said
        key = ""
    unproven = [step.name for step in result.plan.steps if not step.proven]
    if unproven:
        alone = "itself" if len(unproven) == 1 else "themselves"
        said = f"what {listed(unproven)} bring{'s' * (len(unproven) == 1)} by {alone} is estimated"
        yield "together", f"the whole is proven; {said}"
    key = "caution"
    for step in result.plan.steps:
        if step.caution:
            yield key, step.caution
            key = ""
    key = "one-off"
    for step in result.plan.steps:
        if step.break_even_steps is not None:
            yield key, f"{step.name} earns its start-up back after {step.break_even_steps:,} steps"
            key = ""


def _how(result: TuneResult) -> Iterator[tuple[str, str]]:
    if result.plan.steps:
        yield "measured", result.confirmation
    least = smallest_difference(result)
    floor = f"; smallest difference measurable here: {percent(least)}" if least is not None else ""
    key = "" if result.plan.steps else "measured"
    blocks, trials = result.contention.num_blocks, len(result.trials)
    what = counted(trials, "trial") if trials or not blocks else counted(blocks, "block")
    yield key, f"{what} in {duration(result.wall_s)}{floor}"
    error = prediction_error(result.trials)
    if error is not None:
        yield "", error
    if result.contention.num_void or result.contention.num_noisy:
        yield "", _contention(result.contention)
    if result.interrupted:
        yield "", "interrupted: go on with --resume"
    for gap in result.coverage:
        yield "", gap


def smallest_difference(result: TuneResult) -> float | None:
    """Return what could be told from chance: the floor, and no less than the narrowest interval reached.

    None: not measured, or others disturbed most blocks.

    Beside a busy machine intervals are wider than the floor, which is of the original against itself.
    """
    if result.floor is None or 2 * result.contention.num_disturbed > result.contention.num_blocks:
        return None
    told = [result.plan.speedup, *(trial.ratio for trial in result.trials)]
    reached = [math.sqrt(one.high / one.low) - 1 for one in told if one is not None and one.low > 0]
    return max(result.floor, min(reached, default=0.0))


def _contention(load: Contention) -> str:
    most = f" (up to {load.max_foreign_share:.0%} of the CPU)" if load.max_foreign_share is not None else ""
    noisy = f", {load.num_noisy:,} kept although disturbed" if load.num_noisy else ""
    repeated = f"{load.num_void:,} of {counted(load.num_blocks, 'block')} repeated"
    return f"other processes were busy{most}: {repeated}{noisy}"
