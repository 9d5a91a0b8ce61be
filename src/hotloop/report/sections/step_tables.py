"""A step in figures: its time, its phases, its ranks, and what requests wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.model.inference import Inference, Latency
from hotloop.model.observation import Observation, Phase, PhaseTime, RankObservation, StepTime
from hotloop.model.quantities import counted, duration, parts, percent, rate, shares
from hotloop.report.charts.histogram import MIN_NUM
from hotloop.report.content.figures import NOT_MEASURED
from hotloop.report.document import Block, Facts, Table

LEAST_PART = 0.01
"""Of the step: less of the phase `other` has no row of its own."""
_NAMES = {"checkpoint": "checkpoints", "import": "imports"}
_HEADINGS = {Phase.COMMUNICATION: "comm."}
"""Phases whose names are too wide for a column."""


def step_facts(step: StepTime, observation: Observation) -> Facts:
    """Return its time and rates, in rows."""
    num_ranks = len(observation.ranks)
    every = f" on {num_ranks} ranks" if num_ranks > 1 else ""
    mean = [f"{duration(step.whole_s)} mean"]
    if step.samples_per_s is not None:
        mean.append(f"{rate(step.samples_per_s)} samples/s{every}")
    if step.tokens_per_s is not None:
        mean.append(f"{rate(step.tokens_per_s)} tokens/s{every}")
    interval = f"[{duration(step.low_s)}, {duration(step.high_s)}]"
    median = f"{duration(step.median_s)} median {interval} (95% interval)"
    # Of fewer steps a percentile is the longest of them, and as little to go by as their distribution.
    tail = f", p95 {duration(step.p95_s)}, p99 {duration(step.p99_s)}" if step.num >= MIN_NUM else ""
    rows = [
        ("step", f"{', '.join(mean)}, over {counted(step.num, 'step')}"),
        ("", f"{median}{tail}"),
        ("", f"in each: {' '.join(step.rhythm)}"),
    ]
    if observation.clock != "host":
        rows.append(("", f"timed by the {observation.clock}'s own clock"))
    return Facts(tuple(rows))


def phases_table(observation: Observation, step: StepTime) -> Table:
    """Return time and share of each phase. All are of the mean step, so that they add up to it."""
    whole_s = step.whole_s
    seen = [(phase, observation.phases[phase].share) for phase in Phase if phase in observation.phases]
    spent = parts([share * whole_s for _, share in seen], whole_s)
    said = shares([share for _, share in seen])
    rows: list[tuple[tuple[str, ...], float, Phase]] = []
    for (phase, part), time, percents in zip(seen, spent, said, strict=True):
        rows.append(((phase.value, time, percents), part, phase))
        for name, one in _named(observation, phase):
            row = (f"  of it {name}", *parts([one.share * whole_s], whole_s), percent(one.share))
            rows.append((row, one.share, phase))
    return Table(
        ("mean step", *parts([whole_s], whole_s), "100%"),
        tuple(row for row, _, _ in rows),
        figures=(1, 2),
        bars=tuple(share for _, share, _ in rows),
        hues=tuple(phase.value for _, _, phase in rows),
    )


def _named(observation: Observation, phase: Phase) -> Iterator[tuple[str, PhaseTime]]:
    """Yield what of a phase has a name: parts of it, not beside it."""
    named = dict(observation.other) if phase is Phase.OTHER else {}
    if phase is Phase.FORWARD and observation.evaluated is not None:
        named = {"without gradients": observation.evaluated}
    for name, one in named.items():
        if one.share >= LEAST_PART:
            yield _NAMES.get(name, name.replace("_", " ")), one


def ranks_table(ranks: Sequence[RankObservation]) -> Table:
    """Return the mean step of each rank, and the shares of it."""
    phases = [phase for phase in Phase if any(phase in rank.phases for rank in ranks)]
    return Table(
        ("rank", "mean step", *(_HEADINGS.get(phase, phase.value) for phase in phases)),
        tuple(_rank(rank, phases) for rank in ranks),
        caption="By rank: the mean step, and shares of it",
        figures=tuple(range(len(phases) + 2)),
    )


def _rank(rank: RankObservation, phases: Sequence[Phase]) -> tuple[str, ...]:
    own = [phase for phase in phases if phase in rank.phases]
    said = dict(zip(own, shares([rank.phases[phase].share for phase in own]), strict=True))
    name = str(rank.rank) if rank.rank is not None else f"pid {rank.pid}"
    spent = duration(rank.step.whole_s) if rank.step else NOT_MEASURED
    return name, spent, *(said.get(phase, "-") for phase in phases)


def latency(found: Inference) -> Iterator[Block]:
    """Yield what those wait for who are served by a program that trains nothing."""
    named = (
        ("a request", found.latency),
        ("first token", found.first_token),
        ("next tokens", found.between_tokens),
    )
    yield Table(
        ("latency", "number", "p50", "95% interval", "p95", "p99"),
        tuple(_latency(name, each) for name, each in named if each is not None),
        caption=f"Requests: {rate(found.requests_per_s)} requests/s",
        figures=(1, 2, 3, 4, 5),
    )
    if found.forwards_per_request is not None:
        yield Facts((("tokens", f"{found.forwards_per_request:.3g} for each prompt"),))


def _latency(name: str, each: Latency) -> tuple[str, ...]:
    interval = f"{duration(each.low_s)} to {duration(each.high_s)}"
    return name, f"{each.num:,}", duration(each.p50_s), interval, duration(each.p95_s), duration(each.p99_s)


def batches(found: Inference) -> Iterator[Block]:
    """Yield what the model alone was measured to take of batches of each size; nothing where none was tried."""
    rows = tuple(_batch(found, size, each) for size, each in found.by_batch.items())
    if not rows:
        return
    yield Table(
        ("batch", "samples/s", "p50", "95% interval", "p95", ""),
        rows,
        caption="The model alone, by the samples of a batch",
        figures=(1, 2, 3, 4),
    )
    limit_s = found.latency_limit_s
    if found.best_batch is None and limit_s is not None:
        yield Facts((("limit", f"no batch size keeps 95% of batches within {duration(limit_s)}"),))


def _batch(found: Inference, size: int, each: Latency) -> tuple[str, ...]:
    says = [
        word
        for word, told in (("now", size == found.batch), ("larger gains little", size == found.best_batch))
        if told
    ]
    interval = f"{duration(each.low_s)} to {duration(each.high_s)}"
    return (
        f"{size:,}",
        rate(size / each.p50_s),
        duration(each.p50_s),
        interval,
        duration(each.p95_s),
        ", ".join(says),
    )
