"""Where the program stands between what its input and what its device allow."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.ceilings import Ceilings
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import byte_size, counted, duration, percent, rate, significant
from hotloop.report.charts.roofline import roofline
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import speedup
from hotloop.report.content.ratios import told_gain
from hotloop.report.document import Block, Chart, Facts, More, Section, Table
from hotloop.report.sections.operators import efficiency, operators

BEYOND = 1.05
"""A gain of perfect input that is so much larger than the wait for data is explained."""


def ceilings(content: ReportContent) -> Section | None:
    """Return the section; None: neither limits nor operators were measured."""
    seen = content.observation
    if seen is None:
        return None
    blocks: list[Block] = [*_limits(seen), *limits(seen)]
    if seen.efficiency is not None:
        blocks.append(efficiency(seen.efficiency))
    blocks += _roofline(content, seen)
    if seen.deep is not None and seen.deep.operators is not None:
        blocks.append(operators(seen.deep.operators))
    if not blocks:
        return None
    return Section(
        anchor="ceilings", title="How far it is from its limits", lead=_lead(seen), blocks=tuple(blocks)
    )


def _lead(seen: Observation) -> str:
    found = seen.ceilings
    if found is None or found.perfect_input is None:
        return ""
    return f"With input that costs nothing a step would be {speedup(found.perfect_input)} as fast."


def _limits(seen: Observation) -> Iterator[Block]:
    found = seen.ceilings
    rows = list(_rates(seen, found)) if found is not None else []
    if len(rows) > 1:
        yield Chart(
            kind="bars",
            title="Samples a second",
            summary="; ".join(f"{name}: {rate(middle)} samples/s" for name, middle, _, _ in rows),
            data={"rows": rows, "unit": "samples/s"},
            table=Table(
                ("limit", "samples/s"),
                tuple((name, _with_interval(middle, low, high)) for name, middle, low, high in rows),
                figures=(1,),
                bars=tuple(middle for _, middle, _, _ in rows),
                hues=("forward",) * len(rows),
            ),
        )


def limits(seen: Observation) -> Iterator[Block]:
    """Yield what a step would take if a part of it came for nothing; in short, with perfect input alone."""
    found = seen.ceilings
    rows = list(_limit_rows(seen, found)) if found is not None else []
    if rows:
        yield Facts(tuple(rows[:1]))
    if rows[1:]:
        yield More((Facts(tuple(rows[1:])),))


def _limit_rows(seen: Observation, found: Ceilings) -> Iterator[tuple[str, str]]:
    data = seen.phases.get(Phase.DATA)
    gain = found.perfect_input
    if gain is not None and found.perfect_input_step_s is not None:
        said = f"{duration(found.perfect_input_step_s)} a step with perfect input ({told_gain(gain)})"
        per_s = found.compute_samples_per_s
        yield "ceilings", f"{said}{f', {rate(per_s)} samples/s' if per_s is not None else ''}"
        if gain.low * (1 - (data.share if data is not None else 0.0)) > BEYOND:
            yield "", "more than the wait for data: making batches takes cores from the rest of the step"
    if found.perfect_device_step_s is not None:
        yield "device", f"{duration(found.perfect_device_step_s)} a step with a perfect device"
    if found.loader_samples_per_s:
        parts = [
            f"{rate(per_s)} with {workers}{' (now)' if workers == found.num_workers else ''}"
            for workers, per_s in sorted(found.loader_samples_per_s.items())
        ]
        yield "loader", f"alone, samples/s by workers: {', '.join(parts)}"
    if found.transfer_s is not None:
        yield "transfer", f"{duration(found.transfer_s)} to copy one batch to the device"


def _with_interval(middle: float, low: float | None, high: float | None) -> str:
    return rate(middle) if low is None or high is None else f"{rate(middle)} [{rate(low)}, {rate(high)}]"


def _rates(seen: Observation, found: Ceilings) -> Iterator[tuple[str, float, float | None, float | None]]:
    step = seen.step
    if step is not None and step.samples_per_s is not None:
        yield "the program now", step.samples_per_s, None, None
    if found.compute_samples_per_s is not None:
        yield "perfect input", found.compute_samples_per_s, found.compute_low, found.compute_high
    for workers, per_s in sorted(found.loader_samples_per_s.items()):
        now = " (now)" if workers == found.num_workers else ""
        yield f"loader alone, {counted(workers, 'worker')}{now}", per_s, None, None


def _roofline(content: ReportContent, seen: Observation) -> Iterator[Block]:
    found = roofline(seen, content.card)
    if found is not None:
        yield Chart(
            kind="roofline",
            title="Roofline of the most expensive operators",
            summary=f"{len(found['points'])} operators below {significant(found['peak'] / 1e9)} GFLOP/s "
            f"({found['precision']}) and {byte_size(found['bandwidth'])}/s, both measured on this machine. An "
            "operator left of the bend waits for memory. Bytes are those of its tensors: the least that it moves.",
            data=found,
            table=Table(
                ("operator", "FLOP per byte", "GFLOP/s", "share"),
                tuple(
                    (
                        one["name"],
                        significant(one["intensity"]),
                        significant(one["rate"] / 1e9),
                        percent(one["share"]),
                    )
                    for one in found["points"]
                ),
                figures=(1, 2, 3),
            ),
        )
