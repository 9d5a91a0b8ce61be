"""An Observation as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.deep import Deep
from hotloop.model.observation import Observation, Phase, PhaseTime, RankObservation, StepTime
from hotloop.model.quantities import byte_size, counted, duration, parts, percent, rate, shares
from hotloop.report.content.tree_memory import tree_told
from hotloop.report.terminal.attached import attached
from hotloop.report.terminal.bars import BAR, COLORS
from hotloop.report.terminal.busy_machine import busy_machine
from hotloop.report.terminal.inference import rows as rows_of_inference
from hotloop.report.terminal.layout import facts, next_steps
from hotloop.report.terminal.loading import loading
from hotloop.report.terminal.monitors import monitors
from hotloop.report.terminal.operators import efficiency, operators
from hotloop.report.terminal.profile import render_deep
from hotloop.report.terminal.run_account import run_account
from hotloop.stats.late_rank import late_rank, told
from hotloop.stats.quietness import is_too_busy

LEAST_PART = 0.01
"""Of the step: less of the phase `other` is not named on the screen."""
LEAST_LATE = 0.05
"""Of the step: below it a wait for other ranks is no warning of `diagnose` either."""
_SAYS = {
    Phase.DATA: "waiting for data",
    Phase.TRANSFER: "copying batches to the device",
    Phase.FORWARD: "the forward pass",
    Phase.BACKWARD: "the backward pass",
    Phase.COMMUNICATION: "waiting for other ranks",
    Phase.OPTIMIZER: "the optimizer",
    Phase.OTHER: "code between the phases (logging, metrics, your own)",
}
_NAMES = {"evaluate": "evaluation", "checkpoint": "checkpoints", "import": "imports"}


def render(observation: Observation) -> RenderableType:
    """Return the whole observation, ready to print."""
    return Group(*_parts(observation))


def render_next(observation: Observation, *, stored: bool = True) -> RenderableType:
    """Return what to type next; without a command, `diagnose` reads the session that was stored."""
    if observation.exit_code not in (None, 0):
        return next_steps(
            [("your program failed: run it by itself and correct it first", list(observation.command))]
        )
    return next_steps(
        [
            ("why, and what to change", ["hotloop", "diagnose", *(() if stored else observation.command)]),
            ("try what helps, and prove it", ["hotloop", "tune", *observation.command]),
        ]
    )


def _parts(observation: Observation) -> Iterator[RenderableType]:
    step = observation.step
    if step is None:
        host = observation.deep.host if observation.deep else None
        if host is None:
            yield Text("no step was measured")
        else:
            yield from attached(host)
            yield from render_deep(Deep(host=host))
        yield from _coverage(observation)
        return
    yield from busy_machine(observation.foreign_share)
    busy = is_too_busy(observation.foreign_share)
    yield Text(f"{_verdict(observation, step)}{' (as measured here)' * busy}", style="" if busy else "bold")
    yield Text("")
    yield _step(step, observation)
    if observation.inference is not None:
        yield facts(rows_of_inference(observation.inference), key_width=11)
    yield Text("")
    yield _bars(observation, step)
    if len(observation.ranks) > 1:
        yield Text("")
        yield _ranks(observation.ranks)
        late = late_rank(observation.ranks)
        if late is not None and late.excess_s >= LEAST_LATE * step.whole_s:
            yield Text(
                f"rank {late.rank} comes last to the collectives, and the others wait for it: {told(late)}"
            )
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
        if observation.deep.loading is not None:
            yield from loading(observation.deep.loading)
        yield from render_deep(observation.deep)
    yield from _coverage(observation)


def _verdict(observation: Observation, step: StepTime) -> str:
    """Return the largest part of the step, in a sentence."""
    largest = max(observation.phases, key=lambda phase: observation.phases[phase].share, default=None)
    if largest is None:
        return f"A step takes {duration(step.whole_s)}."
    share = observation.phases[largest].share
    what = f"{_SAYS[largest]}{_of_rank(observation)}"
    return f"A step takes {duration(step.whole_s)}; the largest part, {share:.0%}, is {what}."


def _of_rank(observation: Observation) -> str:
    """Say whose step is shown, where there are several; the table of ranks has the others."""
    if len(observation.ranks) < 2:
        return ""
    rank = observation.ranks[0].rank
    return f" (rank {rank})" if rank is not None else f" (process {observation.ranks[0].pid})"


def _step(step: StepTime, observation: Observation) -> RenderableType:
    num_ranks = len(observation.ranks)
    every = f" on {num_ranks} ranks" if num_ranks > 1 else ""
    mean = [f"{duration(step.whole_s)} mean"]
    if step.samples_per_s is not None:
        mean.append(f"{rate(step.samples_per_s)} samples/s{every}")
    if step.tokens_per_s is not None:
        mean.append(f"{rate(step.tokens_per_s)} tokens/s{every}")
    median = (
        f"{duration(step.median_s)} median [{duration(step.low_s)}, {duration(step.high_s)}] (95% interval)"
    )
    rows = [
        ("step", f"{', '.join(mean)}, over {counted(step.num, 'step')}"),
        ("", f"{median}, p95 {duration(step.p95_s)}, p99 {duration(step.p99_s)}"),
        ("", f"in each: {' '.join(step.rhythm)}"),
    ]
    if observation.clock != "host":
        rows.append(("", f"timed by the {observation.clock}'s own clock"))
    return facts(rows, key_width=5)


def _bars(observation: Observation, step: StepTime) -> RenderableType:
    """All times and shares are of the mean step, so that they add up to it."""
    whole_s = step.whole_s
    seen = [(phase, observation.phases[phase].share) for phase in Phase if phase in observation.phases]
    times = parts([share * whole_s for _, share in seen], whole_s)
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("mean step", no_wrap=True)
    table.add_column(*parts([whole_s], whole_s), justify="right", no_wrap=True)
    table.add_column("100%", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for (phase, share), spent, said in zip(seen, times, shares([share for _, share in seen]), strict=True):
        bar = Text("█" * max(1, round(share * BAR)), style=COLORS[phase])
        table.add_row(phase.value, spent, said, bar)
    for name, part in _named(observation.other):
        bar = Text("▒" * max(1, round(part.share * BAR)), style=COLORS[Phase.OTHER])
        table.add_row(f"  {name}", *parts([part.share * whole_s], whole_s), percent(part.share), bar)
    return table


def _named(other: dict[str, PhaseTime]) -> Iterator[tuple[str, PhaseTime]]:
    """Yield what of the phase `other` has a name: parts of it, not beside it."""
    for name, part in other.items():
        if part.share >= LEAST_PART:
            yield f"of it {_NAMES.get(name, name.replace('_', ' '))}", part


def _ranks(ranks: tuple[RankObservation, ...]) -> RenderableType:
    phases = [phase for phase in Phase if any(phase in rank.phases for rank in ranks)]
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("rank", justify="right")
    table.add_column("mean step", justify="right")
    for phase in phases:
        table.add_column("comm." if phase is Phase.COMMUNICATION else phase.value, justify="right")
    for rank in ranks:
        name = str(rank.rank) if rank.rank is not None else f"pid {rank.pid}"
        of_step = shares([rank.phases[phase].share for phase in phases if phase in rank.phases])
        said = dict(zip((phase for phase in phases if phase in rank.phases), of_step, strict=True))
        spent = duration(rank.step.whole_s) if rank.step else "-"
        table.add_row(name, spent, *(said.get(phase, "-") for phase in phases))
    return table


def _coverage(observation: Observation) -> Iterator[RenderableType]:
    if observation.coverage:
        yield Text("\nnot measured", style="bold")
        together: dict[str, list[str]] = {}
        for gap in observation.coverage:
            together.setdefault(gap.why, []).append(gap.what.replace("_", " "))
        yield facts((("", f"{', '.join(what)}: {why}") for why, what in together.items()), key_width=1)


def _memory(observation: Observation) -> Iterator[tuple[str, str]]:
    peak = observation.memory.peak_bytes
    if peak is not None:
        yield "memory", f"peak {byte_size(peak)} ({observation.memory.method})"
    together = tree_told(observation.memory.tree)
    if together is not None:
        yield ("" if peak is not None else "memory"), together
