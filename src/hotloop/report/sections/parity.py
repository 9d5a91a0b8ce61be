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
        lead = "Nothing was changed. Below: the program against itself."
    elif found is None or not found.measured:
        lead = f"Not measured: {found.evidence if found else 'no loss was seen'}."
    elif found.passed:
        over = f"{found.num_steps} {_UNITS[found.compared]} the {found.compared}"
        lead = f"Yes: over {over} stay within what rounding alone does to the original's."
    elif found.statistic is None:
        lead = f"No: {found.evidence}."
    else:
        lead = f"No: the {found.compared} depart from the original's by more than rounding explains."
    safe = found is not None and found.passed and found.statistic is not None and tuning.plan.steps
    does = "answer" if found is not None and found.compared == "outputs" else "learn"
    title = f"Is it safe? It {does}s the same" if safe else f"Does it {does} the same?"
    return Section(anchor="parity", title=title, lead=lead, blocks=tuple(blocks)) if blocks else None


def _curves(losses: LossCurves) -> Iterator[Chart]:
    floor = [curve for curve in (losses.original, *losses.repeats, losses.perturbed) if curve]
    lines = [("original", losses.original)]
    lines += [("original again", curve) for curve in losses.repeats[:1]]
    lines += [("with the plan", curve) for curve in losses.plan[:1]]
    noise = ", one of them with rounding noise on its parameters" if losses.perturbed else ""
    table = Table(
        ("run", "steps", "first loss", "last loss"),
        tuple((name, str(len(curve)), f"{curve[0]:.4g}", f"{curve[-1]:.4g}") for name, curve in lines),
        figures=(1, 2, 3),
    )
    shortest, longest = (which(len(curve) for _, curve in lines) for which in (min, max))
    length = (
        f"{longest} steps" if shortest == longest else f"{shortest} to {longest} steps, each run its own,"
    )
    yield _chart(
        "Loss on the same batches",
        f"{length} from one seed. The band is what {len(floor)} runs of the original span{noise}.",
        lines,
        floor,
        table=table,
    )
    if shortest >= WINDOW and len(lines) > 1:
        yield _departures(lines[1:], floor, losses.original)


def _departures(lines: Sequence[tuple[str, Curve]], floor: Sequence[Curve], original: Curve) -> Chart:
    """The same, as the difference from the original, where curves lie on one another."""
    own = [_departure(curve, original) for curve in floor]
    padded = [one + (0.0,) * (max(map(len, own)) - len(one)) for one in own]
    widest = np.maximum.accumulate(np.max(np.abs(padded), axis=0))
    return _chart(
        "Departure from the original, per cent of its loss",
        f"Means over {WINDOW} steps. Within the band the difference is no larger than between runs of the original.",
        [(name, _departure(curve, original)) for name, curve in lines],
        [tuple(one.tolist()) for one in (widest, -widest)],
        unit="%",
    )


def _departure(curve: Curve, original: Curve) -> Curve:
    num = min(len(curve), len(original))
    if num < WINDOW:
        return ()
    size = np.abs(np.array(original[:num]))
    away = 100 * (np.array(curve[:num]) - np.array(original[:num])) / np.where(size > 0, size, np.nan)
    smooth = np.convolve(np.where(np.isfinite(away), away, 0.0), np.ones(WINDOW) / WINDOW, mode="valid")
    return tuple(float(one) for one in smooth)


def _chart(
    title: str,
    summary: str,
    lines: Sequence[tuple[str, Curve]],
    floor: Sequence[Curve],
    *,
    unit: str = "",
    table: Table | None = None,
) -> Chart:
    longest = max((curve for _, curve in lines), key=len)
    kept = extremes(np.array(longest)).tolist()
    return Chart(
        kind="curves",
        title=title,
        summary=summary,
        data={
            "x": kept,
            "lines": [{"name": name, "y": [_at(curve, at) for at in kept]} for name, curve in lines],
            "low": [_bound(min, floor, at) for at in kept],
            "high": [_bound(max, floor, at) for at in kept],
            "name": "departure" if unit else "loss",
            "unit": unit,
        },
        table=table,
        rule=rule(len(longest)),
    )


def _bound(which: Callable[[list[float]], float], curves: Sequence[Curve], at: int) -> float | None:
    values = [value for curve in curves if (value := _at(curve, at)) is not None]
    return which(values) if values else None


def _at(curve: Curve, at: int) -> float | None:
    """Return a value; None: it is no number, or the run had come to its end."""
    return curve[at] if at < len(curve) and math.isfinite(curve[at]) else None
