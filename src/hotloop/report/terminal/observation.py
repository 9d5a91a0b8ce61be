"""An Observation as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.observation import Observation, Phase, RankObservation, StepTime
from hotloop.report.terminal.layout import facts
from hotloop.report.terminal.monitors import monitors
from hotloop.report.terminal.operators import efficiency, operators
from hotloop.report.terminal.profile import render_deep
from hotloop.report.terminal.quantities import byte_size, duration, percent, rate
from hotloop.report.terminal.run_account import run_account

BAR = 36
"""Columns of a full bar; with name, time and share a line is 72 wide."""
LEAST_PART = 0.01
"""Of the step: less of the phase `other` is not named on the screen."""
COLORS = {
    Phase.DATA: "yellow",
    Phase.TRANSFER: "magenta",
    Phase.FORWARD: "blue",
    Phase.BACKWARD: "cyan",
    Phase.COMMUNICATION: "red",
    Phase.OPTIMIZER: "green",
    Phase.OTHER: "white",
}


def render(observation: Observation) -> RenderableType:
    """Return the whole observation, ready to print."""
    return Group(*_parts(observation))


def _parts(observation: Observation) -> Iterator[RenderableType]:
    step = observation.step
    if step is None:
        yield Text("no step was measured")
        yield from _coverage(observation)
        return
    yield _step(step, observation.clock)
    yield Text("")
    yield _bars(observation)
    if len(observation.ranks) > 1:
        yield Text("")
        yield _ranks(observation.ranks)
    yield Text("")
    yield run_account(observation.run)
    yield Text("")
    yield facts(_memory(observation), key_width=7)
    if observation.efficiency is not None:
        yield efficiency(observation.efficiency)
    if observation.deep is not None and observation.deep.operators is not None:
        yield Text("")
        yield operators(observation.deep.operators)
    if observation.monitors is not None:
        yield Text("")
        yield monitors(observation.monitors)
    if observation.deep is not None:
        yield from render_deep(observation.deep)
    yield from _coverage(observation)


def _step(step: StepTime, clock: str) -> RenderableType:
    interval = f"[{duration(step.low_s)}, {duration(step.high_s)}]"
    rates = [f"p95 {duration(step.p95_s)}, p99 {duration(step.p99_s)}"]
    if step.samples_per_s is not None:
        rates.append(f"{rate(step.samples_per_s)} samples/s")
    if step.tokens_per_s is not None:
        rates.append(f"{rate(step.tokens_per_s)} tokens/s")
    rows = [
        ("step", f"{duration(step.median_s)}  {interval} median of {step.num} steps, 95% interval"),
        ("", ", ".join(rates)),
        ("", f"rhythm: {' '.join(step.rhythm)}"),
    ]
    if clock != "host":
        rows.append(("", f"timed by the {clock}'s own clock"))
    return facts(rows, key_width=5)


def _bars(observation: Observation) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    for right in (False, True, True, False):
        table.add_column(justify="right" if right else "left", no_wrap=True)
    for phase in Phase:
        spent = observation.phases.get(phase)
        if spent is None:
            continue
        bar = Text("█" * max(1, round(spent.share * BAR)), style=COLORS[phase])
        table.add_row(phase.value, duration(spent.median_s), percent(spent.share), bar)
    for name, part in observation.other.items():
        if part.share >= LEAST_PART:
            bar = Text("▒" * max(1, round(part.share * BAR)), style=COLORS[Phase.OTHER])
            table.add_row(f"  {name}", duration(part.median_s), percent(part.share), bar)
    return table


def _ranks(ranks: tuple[RankObservation, ...]) -> RenderableType:
    phases = [phase for phase in Phase if any(phase in rank.phases for rank in ranks)]
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("rank", justify="right")
    table.add_column("step", justify="right")
    for phase in phases:
        table.add_column("comm." if phase is Phase.COMMUNICATION else phase.value, justify="right")
    for rank in ranks:
        name = str(rank.rank) if rank.rank is not None else f"pid {rank.pid}"
        shares = [percent(rank.phases[phase].share) if phase in rank.phases else "-" for phase in phases]
        table.add_row(name, duration(rank.step.median_s) if rank.step else "-", *shares)
    return table


def _coverage(observation: Observation) -> Iterator[RenderableType]:
    if observation.coverage:
        yield Text("\nnot measured", style="bold")
        yield facts((("", f"{gap.what}: {gap.why}") for gap in observation.coverage), key_width=1)


def _memory(observation: Observation) -> Iterator[tuple[str, str]]:
    peak = observation.memory.peak_bytes
    if peak is not None:
        yield "memory", f"peak {byte_size(peak)} ({observation.memory.method})"
