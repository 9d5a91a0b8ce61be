"""Where the program stands between what its input and what its device allow."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.ceilings import Ceilings
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size, counted, duration, percent, rate, significant
from hotloop.report.charts.roofline import roofline
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import speedup
from hotloop.report.document import Block, Chart, Facts, Section, Table

MAX_OPERATORS = 12


def ceilings(content: ReportContent) -> Section | None:
    """Return the section; None: neither limits nor operators were measured."""
    seen = content.observation
    if seen is None:
        return None
    blocks = [*_limits(seen), *_efficiency(seen), *_roofline(content, seen), *_operators(seen)]
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
            ),
            height=70 + 40 * len(rows),
        )


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


def _efficiency(seen: Observation) -> Iterator[Block]:
    found = seen.efficiency
    if found is None:
        return
    rows = [("arithmetic of a step", f"{significant(found.flop / 1e9)} GFLOP, mostly {found.precision}")]
    rows.append(("rate", f"{significant(found.flop_per_s / 1e9)} GFLOP/s"))
    if found.mfu is not None and found.peak_flop_per_s is not None:
        peak = f"{significant(found.peak_flop_per_s / 1e9)} GFLOP/s"
        rows.append(
            (
                "of this machine's peak",
                f"{percent(found.mfu)} of {peak}, the fastest matrix product or convolution measured",
            )
        )
    elif found.why_no_peak:
        rows.append(("of this machine's peak", f"not measured: {found.why_no_peak}"))
    yield Facts(tuple(rows))


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
            height=320,
        )


def _operators(seen: Observation) -> Iterator[Block]:
    found = seen.deep.operators if seen.deep else None
    if found is None:
        return
    yield Table(
        ("operator", "shapes", "calls", "time", "share"),
        tuple(
            (
                one.name,
                " ".join("x".join(map(str, shape)) for shape in one.shapes),
                significant(one.count),
                duration(one.device_s if one.device_s is not None else one.self_s),
                percent(one.share),
            )
            for one in found.operators[:MAX_OPERATORS]
        ),
        caption=f"The most expensive operators of a step, under the profiler, over {found.num_steps} steps",
        figures=(2, 3, 4),
    )
