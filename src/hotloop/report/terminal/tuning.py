"""The result of tuning as text, at 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.optimization import Refusal
from hotloop.model.quantities import byte_size, duration, percent, rate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Contention, PlanStep, TuneResult
from hotloop.report.terminal.layout import WIDTH, facts, paste
from hotloop.report.terminal.prediction_error import prediction_error

BAR = 22
"""Columns of the waterfall's longest bar; with name, factor, interval and total a line is 80 wide."""
NAME_WIDTH = 26
MANY = 3
"""So many optimizations with the same reason are one line."""


def render(result: TuneResult) -> RenderableType:
    """Return the whole result, ready to print."""
    return Group(*_parts(result))


def render_next(result: TuneResult, plan: str | None) -> RenderableType:
    """Return what to type next.

    Args:
        result: with a plan that is not empty.
        plan: the plan's file; None: the one that is looked for first.
    """
    option = ["--plan", plan] if plan else []
    run = paste(["hotloop", "run", *option, *result.command], width=WIDTH)
    return Group(Text("\nrun it for real", style="bold"), Text(run, overflow="fold"))


def _parts(result: TuneResult) -> Iterator[RenderableType]:
    yield facts([("baseline", _baseline(result))])
    yield Text("")
    if result.plan.steps and result.plan.speedup is not None:
        yield _waterfall(result.plan.steps, result.plan.speedup)
        yield Text("")
        yield facts(_proof(result))
    else:
        yield Text(f"the plan is empty: {_why_empty(result)}", style="bold")
    yield Text("")
    yield from _refused(result.refused)
    yield facts(_how(result))


def _why_empty(result: TuneResult) -> str:
    if result.interrupted:
        return "interrupted before anything was proven"
    if not result.trials:
        return "there was nothing to try, or no time for it"
    return "nothing that was tried made this program provably faster"


def _baseline(result: TuneResult) -> str:
    base = result.baseline
    text = f"{duration(base.step_s)} a step [{duration(base.low_s)}, {duration(base.high_s)}]"
    return f"{text}, {rate(base.samples_per_s)} samples/s" if base.samples_per_s is not None else text


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
        verdict = f"the same, {parity.num_steps} steps compared" if compared else "not measured"
        yield "learning", f"{verdict}: {parity.evidence}"
    before, after = result.peak_bytes
    if before is not None and after is not None:
        yield "memory", f"{byte_size(before)} before, {byte_size(after)} after"
    key = "one-off"
    for step in result.plan.steps:
        if step.break_even_steps is not None:
            yield key, f"{step.name} earns its start-up back after {step.break_even_steps:,} steps"
            key = ""


def _refused(refused: tuple[Refusal, ...]) -> Iterator[RenderableType]:
    """Variants of one optimization stand together, and what many have in common is said once."""
    if not refused:
        return
    common = [reason for reason, num in Counter(one.reason for one in refused).items() if num >= MANY]
    yield Text("not in the plan", style="bold")
    rows = list(_variants([one for one in refused if one.reason not in common]))
    if rows:
        width = min(NAME_WIDTH, max(len(key) for key, _ in rows) + 1)
        yield facts(rows, key_width=width, style="dim")
    for reason in common:
        names = ", ".join(one.name for one in refused if one.reason == reason)
        yield facts([("", f"{reason}: {names}")], key_width=1, style="dim")
    yield Text("")


def _variants(refused: Sequence[Refusal]) -> Iterator[tuple[str, str]]:
    groups: dict[str, list[str]] = {}
    for refusal in refused:
        name, _, params = refusal.name.partition("(")
        variant = f"{params.removesuffix(')')}: " if params else ""
        groups.setdefault(name, []).append(variant + refusal.reason)
    for name, reasons in groups.items():
        for at, reason in enumerate(reasons):
            yield f"  {name}" if not at else "", reason


def _how(result: TuneResult) -> Iterator[tuple[str, str]]:
    yield "measured", result.confirmation
    floor = percent(result.floor) if result.floor is not None else "not measured"
    num = len(result.trials)
    yield "", f"floor of this machine {floor}, {num} trial{'s' * (num != 1)} in {duration(result.wall_s)}"
    error = prediction_error(result.trials)
    if error is not None:
        yield "", error
    if result.contention.num_void or result.contention.num_noisy:
        yield "", _contention(result.contention)
    if result.interrupted:
        yield "", "interrupted: go on with --resume"
    for gap in result.coverage:
        yield "", gap


def _contention(load: Contention) -> str:
    most = (
        f" (up to {percent(load.max_foreign_share)} of the machine)"
        if load.max_foreign_share is not None
        else ""
    )
    noisy = f", {load.num_noisy} kept noisy" if load.num_noisy else ""
    return f"others were busy{most}: {load.num_void} of {load.num_blocks} blocks repeated{noisy}"
