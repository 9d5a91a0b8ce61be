"""Boxes with names: what ran when, and what called what."""

from __future__ import annotations

import zlib
from typing import Any

from markupsafe import Markup

from hotloop.model.quantities import percent
from hotloop.report.html.drawing.markup import hue, joined, legend, milliseconds, place, tick
from hotloop.report.html.drawing.scale import scale

ROW = 24
"""Pixels of a row of the timeline; of a flame graph a row is narrower."""
FLAME_ROW = 19
SPANS = {
    "data": "data",
    "iterator": "data",
    "transfer": "transfer",
    "forward": "forward",
    "evaluation": "transfer",
    "evaluate": "transfer",
    "backward": "backward",
    "optimizer": "optimizer",
    "communication": "communication",
    "batch": "data",
}
"""Colours of spans that are phases."""
HUES = {"operators": 212, "device": 268}
"""Degrees of the colour of what has no colour of its own, by the kind of its row."""
NAMED = 0.02
"""Of the width: in narrower boxes a name is not read before they are enlarged; it stands in their title."""


def timeline(data: dict[str, Any]) -> Markup:
    """Return lanes of what ran one after another."""
    rows, names = data["rows"], data["names"]
    axis = scale([begin + length for _, begin, length, _ in data["boxes"]], milliseconds, zero=True, num=6)
    drawn = (
        _box(
            (axis.at(begin), axis.at(begin + length)), ROW * row + 2, ROW - 4,
            names[name].removeprefix("aten::"), milliseconds(length), _color(names[name], rows[row]["kind"]),
        )
        for row, begin, length, name in data["boxes"]
    )  # fmt: skip
    labels = joined(Markup("<span>{}</span>").format(row["name"]) for row in rows)
    ticks = (tick(at, said) for at, said in axis.ticks())
    phases = [name for name in names if name in SPANS and name != "batch"]
    return legend((name, hue(SPANS[name])) for name in phases) + Markup(
        '<div class="lanes zooms"><div class="names">{}</div><div class="plot"><div class="inner">'
        '<div class="boxes" aria-hidden="true" style="height:{}px">{}</div><div class="xlabels">{}</div>'
        "</div></div></div>"
    ).format(labels, ROW * len(rows), joined(drawn), joined(ticks))


def flame(data: dict[str, Any]) -> Markup:
    """Return what called what: a box is as wide as the time under it."""
    names, total = data["names"], data["total"] or 1.0
    depth = 1 + max(box[0] for box in data["boxes"])
    drawn = (
        _box(
            (begin / total, (begin + length) / total), FLAME_ROW * row, FLAME_ROW - 1,
            names[name], f"{milliseconds(1e3 * length)}, {percent(length / total)}", _warm(names[name]),
        )
        for row, begin, length, name in data["boxes"]
    )  # fmt: skip
    return Markup(
        '<div class="lanes flames zooms"><div class="plot"><div class="inner">'
        '<div class="boxes" aria-hidden="true" style="height:{}px">{}</div></div></div></div>'
    ).format(FLAME_ROW * depth, joined(drawn))


def _box(ends: tuple[float, float], top: int, height: int, name: str, said: str, color: str) -> Markup:
    begin, end = ends
    return Markup(
        '<i{} style="left:{};width:{};top:{}px;height:{}px;background:{}" title="{}: {}">{}</i>'
    ).format(
        Markup(' class="phase"') if color.startswith("var(") else "",
        place(begin),
        place(end - begin),
        top,
        height,
        color,
        name,
        said,
        name if end - begin > NAMED else "",
    )


def _color(name: str, kind: str) -> str:
    if name in SPANS:
        return hue(SPANS[name])
    if kind not in HUES:
        return hue("other")
    number = zlib.crc32(name.encode(errors="replace"))
    return f"hsl({HUES[kind] - 22 + number % 44} {44 + number % 20}% {30 + number % 14}%)"


def _warm(name: str) -> str:
    phase = name[1:-1] if name.startswith("[") else ""
    if phase in SPANS:
        return hue(SPANS[phase])
    number = zlib.crc32(name.encode(errors="replace"))
    return f"hsl({18 + number % 34} {62 + number % 18}% {56 + number % 13}%)"
