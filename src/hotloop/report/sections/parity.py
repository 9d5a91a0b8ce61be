"""Whether training still learns the same, or a model that is not trained answers the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hotloop.report.charts.thinning import extremes, rule
from hotloop.report.content.content import LossCurves, ReportContent
from hotloop.report.document import Block, Chart, Facts, Section, Table

Curve = tuple[float, ...]
_UNITS = {"losses": "steps", "outputs": "forwards"}
WINDOW = 10
"""Steps that departures are averaged over: single batches differ more than runs do."""


def parity(content: ReportContent) -> Section | None:
    """Return the section; None: nothing was tuned."""
    tuning = content.tuning
    if tuning is None:
        return None
    found = tuning.plan.parity
    blocks: list[Block] = []
    if content.losses is not None and len(content.losses.original) > 1:
        blocks += _curves(content.losses)
    if found is not None:
        blocks.append(
            Facts(
                (
                    ("check", found.method),
                    ("figures", found.evidence),
                    (f"{_UNITS[found.compared]} compared", f"{found.num_steps}"),
                )
            )
        )
    if not tuning.plan.steps:
        lead = "Nothing was changed, so there is nothing to compare; below, the program against itself."
    elif found is None or found.statistic is None:
        lead = f"Not measured: {found.evidence if found else 'no loss was seen'}."
    elif found.passed:
        over = f"{found.num_steps} {_UNITS[found.compared]} the {found.compared}"
        lead = f"Yes: over {over} keep to what rounding alone does to the original's."
    else:
        lead = f"No: the {found.compared} depart from the original's by more than rounding does."
    safe = found is not None and found.passed and found.statistic is not None and tuning.plan.steps
    does = "answer" if found is not None and found.compared == "outputs" else "learn"
    title = f"Is it safe? It {does}s the same" if safe else f"Does it {does} the same?"
    return Section(anchor="parity", title=title, lead=lead, blocks=tuple(blocks)) if blocks else None


def _curves(losses: LossCurves) -> Iterator[Chart]:
    num = min(len(curve) for curve in (losses.original, *losses.repeats, *losses.plan) if curve)
    floor = [losses.original, *losses.repeats, *([losses.perturbed] if len(losses.perturbed) >= num else [])]
    lines = [("original", losses.original)]
    lines += [("original again", curve) for curve in losses.repeats[:1]]
    lines += [("with the plan", curve) for curve in losses.plan[:1]]
    noise = ", one of them with rounding noise on its parameters" if len(losses.perturbed) >= num else ""
    table = Table(
        ("run", "first loss", "last loss"),
        tuple((name, f"{curve[0]:.4g}", f"{curve[num - 1]:.4g}") for name, curve in lines),
        figures=(1, 2),
    )
    yield _chart(
        "Loss on the same batches",
        f"{num} steps from one seed. The band is what {len(floor)} runs of the original span{noise}.",
        lines,
        floor,
        num,
        table=table,
    )
    if num >= WINDOW and len(lines) > 1:
        yield _departures(lines[1:], floor, losses.original, num)


def _departures(
    lines: Sequence[tuple[str, Curve]], floor: Sequence[Curve], original: Curve, num: int
) -> Chart:
    """The same, as the difference from the original, where curves lie on one another."""
    away = [(name, _departure(curve, original, num)) for name, curve in lines]
    own = [_departure(curve, original, num) for curve in floor]
    widest = np.nanmax(np.abs(own), axis=0)
    spans = [np.maximum.accumulate(widest), -np.maximum.accumulate(widest)]
    return _chart(
        "Departure from the original, per cent of its loss",
        f"Means over {WINDOW} steps. Within the band it is no further away than the original's own runs have been.",
        away,
        [tuple(one.tolist()) for one in spans],
        len(widest),
        unit="%",
    )


def _departure(curve: Curve, original: Curve, num: int) -> Curve:
    away = 100 * (np.array(curve[:num]) - np.array(original[:num])) / np.abs(np.array(original[:num]))
    smooth = np.convolve(np.where(np.isfinite(away), away, 0.0), np.ones(WINDOW) / WINDOW, mode="valid")
    return tuple(float(one) for one in smooth)


def _chart(
    title: str,
    summary: str,
    lines: Sequence[tuple[str, Curve]],
    floor: Sequence[Curve],
    num: int,
    *,
    unit: str = "",
    table: Table | None = None,
) -> Chart:
    kept = extremes(np.array(lines[0][1][:num])).tolist()
    return Chart(
        kind="curves",
        title=title,
        summary=summary,
        data={
            "x": kept,
            "lines": [{"name": name, "y": [_finite(curve[at]) for at in kept]} for name, curve in lines],
            "low": [_bound(min, floor, at) for at in kept],
            "high": [_bound(max, floor, at) for at in kept],
            "name": "departure" if unit else "loss",
            "unit": unit,
        },
        table=table,
        rule=rule(num),
        height=280,
    )


def _bound(which: Callable[[list[float]], float], curves: Sequence[Curve], at: int) -> float | None:
    values = [curve[at] for curve in curves if math.isfinite(curve[at])]
    return which(values) if values else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
