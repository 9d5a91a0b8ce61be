"""The result of tuning as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.optimization import Refusal
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import PlanStep, TuneResult
from hotloop.report.quantities import byte_size, duration, percent, rate

BAR_PER_X = 12
"""Columns of the waterfall's bar for each 1.0x."""
MAX_BAR = 30


def render(result: TuneResult) -> RenderableType:
    """Return the whole result, ready to print."""
    return Group(*_parts(result))


def _parts(result: TuneResult) -> Iterator[RenderableType]:
    yield _baseline(result)
    yield Text("")
    if result.plan.steps and result.plan.speedup is not None:
        yield _waterfall(result.plan.steps, result.plan.speedup)
        yield _proof(result)
    else:
        yield Text("the plan is empty: nothing that was tried made this program provably faster", style="bold")
    yield Text("")
    yield from _refused(result.refused)
    yield _how(result)


def _baseline(result: TuneResult) -> RenderableType:
    base = result.baseline
    text = Text(f"baseline  {duration(base.step_s)} a step [{duration(base.low_s)}, {duration(base.high_s)}]")
    if base.samples_per_s is not None:
        text.append(f", {rate(base.samples_per_s)} samples/s")
    return text


def _waterfall(steps: tuple[PlanStep, ...], speedup: Ratio) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    for justify in ("left", "right", "left", "right", "left"):
        table.add_column(justify=justify)  # type: ignore[arg-type]
    total = 1.0
    table.add_row("as it was", "", "", "1.00x", _bar(1.0))
    for step in steps:
        total *= step.ratio
        table.add_row(_label(step), f"x{step.ratio:.2f}", f"[{step.low:.2f}, {step.high:.2f}]".replace("[", "\\["), f"{total:.2f}x", _bar(total))
    table.add_row(
        Text("confirmed", style="bold"),
        "",
        f"\\[{speedup.low:.2f}, {speedup.high:.2f}]",
        Text(f"{speedup.ratio:.2f}x", style="bold"),
        "",
    )
    return table


def _label(step: PlanStep) -> Text:
    inside = ", ".join(f"{key}={value}" for key, value in sorted(step.params.items()))
    text = Text(step.name)
    if inside:
        text.append(f"\n  {inside}", style="dim")
    return text


def _bar(total: float) -> Text:
    return Text("█" * max(1, min(MAX_BAR, round(total * BAR_PER_X))), style="green")


def _proof(result: TuneResult) -> RenderableType:
    text = Text()
    parity = result.plan.parity
    if parity is not None:
        verdict = "same" if parity.passed and parity.statistic is not None else "not measured"
        text.append(f"\nlearning  {verdict}, {parity.num_steps} steps compared: {parity.evidence}")
    before, after = result.peak_bytes
    if before is not None and after is not None:
        text.append(f"\nmemory    {byte_size(before)} before, {byte_size(after)} after")
    for step in result.plan.steps:
        if step.break_even_steps is not None:
            text.append(f"\none-off   {step.name} earns its start-up back after {step.break_even_steps:,} steps")
    return text


def _refused(refused: tuple[Refusal, ...]) -> Iterator[RenderableType]:
    if not refused:
        return
    yield Text("not in the plan", style="bold")
    for refusal in refused:
        yield Text.assemble(("  " + refusal.name, ""), (f"  {refusal.reason}", "dim"))


def _how(result: TuneResult) -> RenderableType:
    load = result.contention
    text = Text(f"\nmeasured  {result.confirmation}")
    text.append(f"\n          floor of this machine {percent(result.floor)}, {len(result.trials)} trials in {duration(result.wall_s)}")
    if load.max_foreign_share is not None:
        text.append(
            f"\n          others were busy (up to {percent(load.max_foreign_share)} of the machine): "
            f"{load.num_void} of {load.num_blocks} blocks repeated, {load.num_noisy} kept noisy"
        )
    if result.interrupted:
        text.append("\n          interrupted: what was proven until then; go on with --resume")
    for gap in result.coverage:
        text.append(f"\n          {gap}")
    return text
