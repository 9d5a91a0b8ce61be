"""Bars beside names: the waterfall, phases, rates, memory of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from hotloop.model.quantities import duration, percent, rate
from hotloop.report.html.drawing.markup import hue, joined, legend, mebibytes, place, tick, times
from hotloop.report.html.drawing.scale import Scale, scale

FULL = 0.8
"""Of the width, what the longest bar takes: the rest is for its figure."""
GONE = 0.001
"""Of the width: a narrower part of a bar is not seen."""


class Part(msgspec.Struct, frozen=True):
    """A stretch of a bar."""

    begin: float
    end: float
    color: str
    title: str = ""
    kind: str = ""
    """`open`: drawn dashed, for what is not in the plan."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A name, its bar, and the figure behind it."""

    name: str
    parts: tuple[Part, ...]
    figure: str
    interval: tuple[float, float] | None = None
    """Drawn without its upper end where that lies beyond the axis."""
    soft: bool = False
    """Written in the second colour."""


def bars(rows: Sequence[Row], axis: Scale, *, line: float | None = None) -> Markup:
    """Return rows under one axis.

    Args:
        rows: from the top.
        axis: whose values the parts are.
        line: a value that is marked through all rows.
    """
    mark = Markup('<u style="left:{}"></u>').format(_at(axis, line)) if line is not None else Markup("")
    ticks = (tick(FULL * at, said) for at, said in axis.ticks())
    return Markup(
        '<div class="bars">{}<div class="row axis"><span></span><span class="track">{}</span></div></div>'
    ).format(joined(_row(row, axis, mark) for row in rows), joined(ticks))


def _at(axis: Scale, value: float) -> str:
    return place(FULL * axis.at(value))


def _row(row: Row, axis: Scale, mark: Markup) -> Markup:
    ends = [axis.at(end) for part in row.parts for end in (part.begin, part.end)]
    whisker = Markup("")
    if row.interval is not None:
        low, high = (axis.at(value) for value in row.interval)
        ends.append(high)
        far = "far" if row.interval[1] > axis.high else ""
        whisker = Markup('<s class="{}" style="left:{};width:{}"></s>').format(
            far, place(FULL * low), place(FULL * (high - low))
        )
    return Markup(
        '<div class="row{}"><span class="name">{}</span>'
        '<span class="track">{}{}{}<b style="left:{}">{}</b></span></div>'
    ).format(
        " soft" if row.soft else "",
        row.name,
        mark,
        joined(_part(part, axis) for part in row.parts),
        whisker,
        place(FULL * max(ends, default=0.0)),
        row.figure,
    )


def _part(part: Part, axis: Scale) -> Markup:
    begin, end = sorted((axis.at(part.begin), axis.at(part.end)))
    if end - begin < GONE and not part.kind:
        return Markup("")
    return Markup('<i class="{}" style="left:{};width:{};background:{}" title="{}"></i>').format(
        part.kind, place(FULL * begin), place(FULL * (end - begin)), part.color, part.title
    )


def waterfall(data: dict[str, Any]) -> Markup:
    """Return the plan step by step, what it was confirmed at, and what was tried and left out."""
    ratio, low, high = data["confirmed"]
    rows = [Row(name="as it was", parts=(Part(0.0, 1.0, hue("other")),), figure="1.00x")]
    rows += [
        Row(
            name=one["name"],
            parts=(Part(one["from"], one["to"], _good(one["to"] >= one["from"]), f"factor {one['factor']}"),),
            figure=f"{one['to']:.2f}x",
            interval=(min(one["low"], one["to"]), max(one["high"], one["to"])),
        )
        for one in data["steps"]
    ]
    rows.append(
        Row(
            name="confirmed",
            parts=(Part(0.0, ratio, hue("good")),),
            figure=f"{ratio:.2f}x",
            interval=(low, high),
        )
    )
    rows += [_refused(one) for one in data["refused"]]
    ends = [part.end for row in rows for part in row.parts]
    most = 1.3 * max(ends)  # an interval that reaches far says little, and would press the bars together
    axis = scale([most, 0.0], times, zero=True)
    ends += [row.interval[1] for row in rows if row.interval and row.interval[1] <= most]
    return bars(rows, scale([*ends, 0.0], axis.said, zero=True), line=1.0)


def _good(gained: bool) -> str:
    return hue("optimizer" if gained else "communication")


def _refused(one: dict[str, Any]) -> Row:
    ratio = one["ratio"]
    return Row(
        name=f"{one['name']}, left out",
        parts=(Part(1.0, 1.0 if ratio is None else ratio, "transparent", one["reason"], "open"),),
        figure=" ".join([*([] if ratio is None else [f"{ratio:.2f}x"]), one["word"]]),
        interval=None if ratio is None else (min(one["low"], ratio), max(one["high"], ratio)),
        soft=True,
    )


def phases(data: dict[str, Any]) -> Markup:
    """Return steps as bars of their phases."""
    names: list[str] = data["phases"]
    rows = [
        Row(
            name=row["name"],
            parts=tuple(_stacked(names, row["parts"], [hue(name) for name in names], duration)),
            figure=duration(sum(row["parts"].values())),
        )
        for row in data["rows"]
    ]
    axis = scale([sum(row["parts"].values()) for row in data["rows"]], duration, zero=True)
    return legend((name, hue(name)) for name in names) + bars(rows, axis)


def _stacked(
    names: Sequence[str], sizes: dict[str, float], colors: Sequence[str], said: Callable[[float], str]
) -> Iterator[Part]:
    begin, total = 0.0, sum(sizes.values())
    for name, color in zip(names, colors, strict=True):
        size = sizes.get(name, 0.0)
        title = f"{name}: {said(size)} ({percent(size / total)})" if total else name
        yield Part(begin, begin + size, color, title)
        begin += size


def rates(data: dict[str, Any]) -> Markup:
    """Return rates with their intervals."""
    rows = [
        Row(
            name=name,
            parts=(Part(0.0, value, _rate_hue(name), f"{rate(value)} {data['unit']}"),),
            figure=rate(value),
            interval=None if low is None or high is None else (low, high),
        )
        for name, value, low, high in data["rows"]
    ]
    ends: Iterable[float] = (high or value for _, value, _, high in data["rows"])
    return bars(rows, scale([*ends], rate, zero=True))


def _rate_hue(name: str) -> str:
    if name in {"the program now", "before"}:
        return hue("other")
    return hue("data" if name.startswith("loader") else "forward")


STACKS = ("forward", "backward", "optimizer", "other", "data")


def stacks(data: dict[str, Any]) -> Markup:
    """Return memory of modules by what it is for."""
    names: list[str] = data["parts"]
    colors = [hue(STACKS[at % len(STACKS)]) for at in range(len(names))]
    rows = [
        Row(
            name=row["name"],
            parts=tuple(_stacked(names, dict(zip(names, row["parts"], strict=True)), colors, mebibytes)),
            figure=mebibytes(sum(row["parts"])),
        )
        for row in data["rows"]
    ]
    axis = scale([sum(row["parts"]) for row in data["rows"]], mebibytes, zero=True)
    return legend(zip(names, colors, strict=True)) + bars(rows, axis)
