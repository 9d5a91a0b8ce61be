"""Values over values: steps in order, their distribution, curves of losses and of memory, the roofline, raw samples."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from hotloop.model.quantities import counted, percent, scaled, significant
from hotloop.report.html.drawing.frame import Frame
from hotloop.report.html.drawing.markup import hue, legend, mebibytes, milliseconds, series_hue, times
from hotloop.report.html.drawing.scale import Scale, scale

EDGES = 0.015
"""Of the width, left free so that the first and the last point are whole."""
FEW = 100
"""Steps that have room for larger points."""
KINDS = ("steady", "warm-up", "irregular", "profiled", "end only")
KIND_HUES = ("", "other", "data", "data", "")
"""Colours of points by `StepKind`; empty: that of the series."""
EDGE = 1.6
"""Times the 99th percentile, or twice the median: higher steps are drawn at the edge, hollow."""


def _number(value: float) -> str:
    return f"{value:,.6g}"


def steps(data: dict[str, Any]) -> Markup:
    """Return every step's time, with what happened between."""
    every = sorted(value for one in data["series"] for value in one["y"] if math.isfinite(value)) or [1.0]
    most = EDGE * max(every[int(0.99 * (len(every) - 1))], 2 * every[len(every) // 2])
    last = max((one["x"][-1] for one in data["series"] if one["x"]), default=1)
    frame = Frame(
        x=scale([0, last], _number, room=EDGES, num=6),
        y=scale([0.0, min(most, every[-1])], milliseconds, zero=True, room=0.05),
        x_name="step",
        height=220,
        zooms=True,
    )
    marks = (
        ("epoch start", "accent", data["epochs"]),
        ("evaluation", "transfer", data["evaluations"]),
        ("checkpoint", "optimizer", data["checkpoints"]),
    )
    uprights = [
        frame.upright(at, hue(color), f"{name}, step {at}") for name, color, places in marks for at in places
    ]
    many = len(data["series"]) > 1
    radius = 2 if last > FEW else 4
    lines, points = [], []
    for number, one in enumerate(data["series"]):
        if many:
            lines.append(frame.line(list(zip(one["x"], one["y"], strict=True)), series_hue(number), width=1))
            continue
        for x, y, kind in zip(one["x"], one["y"], one["kind"], strict=True):
            if not math.isfinite(y):
                continue
            color = hue(KIND_HUES[kind]) if KIND_HUES[kind] else series_hue(number)
            title = f"step {x}: {milliseconds(y)}, {KINDS[kind]}"
            points.append(
                frame.point(x, min(y, frame.y.high), color, title, radius=radius, hollow=y > frame.y.high)
            )
    named = [(one["name"], series_hue(number)) for number, one in enumerate(data["series"])]
    named += [(name, hue(color)) for name, color, places in marks if places]
    return legend(named) + frame.with_drawn(lines, [*uprights, *points])


ROOM = 1.02
"""A line at the right edge itself is cut off."""


def distribution(data: dict[str, Any]) -> Markup:
    """Return how many steps took how long."""
    edges, counts = data["edges"], data["counts"]
    frame = Frame(
        x=Scale(low=edges[0], high=ROOM * max(edges[-1], data["p99"]) or 1.0, said=milliseconds),
        y=scale([0, *counts], _number, zero=True, room=0.05, num=4),
        x_name="step time",
        y_name="steps",
        height=190,
    )
    boxes = [
        frame.box(
            left,
            right,
            count,
            hue("forward"),
            f"{milliseconds(left)} to {milliseconds(right)}: {counted(count, 'step')}",
        )
        for left, right, count in zip(edges, edges[1:], counts, strict=False)
    ]
    lines = [
        frame.upright(data[name], hue("accent"), f"{name} {milliseconds(data[name])}", dashed=True)
        for name in ("p50", "p95", "p99")
    ]
    said = legend([("p50, p95, p99", hue("accent"))])
    return said + frame.with_drawn([], [*boxes, *lines])


def roofline(data: dict[str, Any]) -> Markup:
    """Return operators under what the machine's arithmetic and memory allow."""
    peak, bandwidth, points = data["peak"], data["bandwidth"], data["points"]
    bend = peak / bandwidth
    across = [point["intensity"] for point in points] + [bend]
    left, right = min(across) / 4, max(across) * 4
    heights = [point["rate"] for point in points] + [peak]
    frame = Frame(
        x=Scale(low=left, high=right, log=True, said=significant),
        y=Scale(low=min(heights) / 3, high=max(heights) * 2, log=True, said=scaled),
        x_name="FLOP per byte",
        y_name="FLOP/s",
        height=270,
    )
    roof = frame.line([(left, left * bandwidth), (bend, peak), (right, peak)], hue("accent"))
    marks = [
        frame.point(
            point["intensity"], point["rate"], hue("forward"),
            f"{point['name']}: {scaled(point['rate'])}FLOP/s, {percent(point['share'])} of the time",
            radius=4 + 13 * math.sqrt(point["share"]),
        )
        for point in points
    ]  # fmt: skip
    return legend(
        [("the machine's limit", hue("accent")), ("an operator, by its share", hue("forward"))]
    ) + frame.with_drawn([roof], marks)


CURVES = {"original": "other", "original again": "forward", "with the plan": "optimizer"}


def curves(data: dict[str, Any]) -> Markup:
    """Return losses over the band of the original's own runs."""
    values = [one for line in data["lines"] for one in line["y"] if one is not None]
    values += [one for name in ("low", "high") for one in data[name] if one is not None]
    unit = data["unit"]
    frame = Frame(
        x=Scale(low=data["x"][0], high=data["x"][-1], said=_number, num=6),
        y=scale(values, lambda value: f"{significant(value)}{unit}", room=0.04),
        x_name="step",
        y_name=data["name"],
        height=230,
        zooms=True,
    )
    band = frame.area(list(zip(data["x"], data["low"], data["high"], strict=True)), hue("forward"))
    drawn = [
        frame.line(
            list(zip(data["x"], line["y"], strict=True)), hue(CURVES[line["name"]]),
            dashed=line["name"] == "original again", width=2.2 if line["name"] == "with the plan" else 1.4,
        )
        for line in data["lines"]
    ]  # fmt: skip
    named = [(line["name"], hue(CURVES[line["name"]])) for line in data["lines"]]
    return legend(named) + frame.with_drawn([band, *drawn])


SIDES = {"as it was": "other", "with the plan": "optimizer"}


def lines(data: dict[str, Any]) -> Markup:
    """Return memory over time."""
    within = data.get("scale") == "ms"
    every = [(line["name"], line.get("x") or data["x"], line["y"]) for line in data["lines"]]
    frame = Frame(
        x=scale(
            [one for _, xs, _ in every for one in xs],
            milliseconds if within else lambda value: f"{value:.4g} s",
            zero=True,
            num=6,
        ),
        y=scale(
            [one for _, _, ys in every for one in ys if one is not None], mebibytes, zero=True, room=0.05
        ),
        x_name=data["axis"],
        height=200,
        zooms=True,
    )
    named = [
        (name, hue(SIDES[name]) if name in SIDES else series_hue(at)) for at, (name, _, _) in enumerate(every)
    ]
    drawn = [
        frame.line(list(zip(xs, ys, strict=True)), color, step=within)
        for (_, xs, ys), (_, color) in zip(every, named, strict=True)
    ]
    marks = [frame.upright(at, hue("soft"), dashed=True) for at in data.get("marks") or ()]
    if data.get("shaded"):
        begin, end = data["shaded"]
        drawn.insert(
            0,
            frame.area([(begin, frame.y.low, frame.y.high), (end, frame.y.low, frame.y.high)], hue("other")),
        )
    return (legend(named) if len(named) > 1 else Markup("")) + frame.with_drawn(drawn, marks)


def predictions(data: dict[str, Any]) -> Markup:
    """Return what was predicted and what was measured."""
    points = data["points"]
    both = [value for point in points for value in (point["predicted"][0], point["measured"][0])]
    axis = scale([1.0, *both], times, room=0.08)
    frame = Frame(x=axis, y=axis, x_name="predicted", y_name="measured", height=280)
    shapes = [frame.line([(axis.low, axis.low), (axis.high, axis.high)], hue("soft"), dashed=True, width=1)]
    marks = []
    for point in points:
        (x, left, right), (y, low, high) = point["predicted"], point["measured"]
        shapes += [
            frame.line([(left, y), (right, y)], hue("forward")),
            frame.line([(x, low), (x, high)], hue("forward")),
        ]
        marks.append(
            frame.point(
                x, y, hue("forward"), f"{point['name']}: predicted {x:.2f}x, measured {y:.2f}x", radius=5
            )
        )
    return frame.with_drawn(shapes, marks)


def blocks(data: dict[str, Any]) -> Markup:
    """Return raw ratios, pair by pair."""
    pairs = data["pairs"]
    every = [value for pair in pairs for value in pair]
    edge = 1.15 * max([abs(value - 1) for value in every] + [0.05])
    frame = Frame(
        x=Scale(low=0, high=len(every) + 1, said=_number),
        y=Scale(low=max(0.0, 1 - edge), high=1 + edge, said=lambda value: f"{value:.2f}x", num=4),
        height=150,
        bare=True,
    )
    marks, at = [], 0
    for number, pair in enumerate(pairs):
        for value in pair:
            at += 1
            marks.append(
                frame.point(at, value, series_hue(number), f"pair {number + 1}: {value:.3f}x", radius=4)
            )
    named = [(f"pair {number + 1}", series_hue(number)) for number in range(len(pairs))]
    return (legend(named) if 1 < len(pairs) < 9 else Markup("")) + frame.with_drawn(
        [], [frame.level(1.0), *marks]
    )


def holds(data: dict[str, Any]) -> Markup:
    """Return the median step of each hold, with a knob and without it."""
    sides = (("with it", data["with"], hue("optimizer")), ("without it", data["without"], hue("other")))
    every = [point for _, points, _ in sides for point in points]
    frame = Frame(
        x=scale([0, *(at for at, _ in every)], _number, room=EDGES, num=6),
        y=scale([value for _, value in every], milliseconds, zero=True, room=0.05, num=4),
        x_name="hold",
        height=150,
    )
    marks = [
        frame.point(at, value, color, f"hold {at}, {name}: {milliseconds(value)}")
        for name, points, color in sides
        for at, value in points
    ]
    return legend((name, color) for name, _, color in sides) + frame.with_drawn([], marks)
