"""A plot of values over values: axes, and what is drawn between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from hotloop.report.html.drawing.markup import hue, joined, place, tick
from hotloop.report.html.drawing.scale import Scale

UNITS = 1000.0
"""Units of the stretched drawing in both directions: lines and areas have no percentages in SVG."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Axes with their names."""

    x: Scale
    y: Scale
    x_name: str = ""
    y_name: str = ""
    height: int = 240
    zooms: bool = False
    """It can be made wider, and is then scrolled."""
    bare: bool = False
    """Without labels on the horizontal axis."""

    def with_drawn(self, shapes: Iterable[Markup], points: Iterable[Markup] = ()) -> Markup:
        """Return the plot.

        Args:
            shapes: lines and areas, in the stretched drawing.
            points: marks that keep their form.
        """
        across = self.x.ticks() if not self.bare else []
        labels = (tick(at, said) for at, said in across)
        return Markup(
            '<div class="xy{}"><div class="yname">{}</div><div class="ylabels">{}</div>'
            '<div class="plot"><div class="inner">'
            '<svg class="canvas" height="{}" aria-hidden="true">{}'
            '<svg width="100%" height="100%" viewBox="0 0 1000 1000" preserveAspectRatio="none">{}</svg>{}</svg>'
            '<div class="xlabels">{}</div></div></div><div class="xname">{}</div></div>'
        ).format(
            " zooms" if self.zooms else "",
            self.y_name,
            joined(
                Markup('<span style="bottom:{}">{}</span>').format(place(at), said)
                for at, said in self.y.ticks()
            ),
            self.height,
            joined(_grid(at) for at, _ in self.y.ticks()),
            joined(shapes),
            joined(points),
            joined(labels),
            self.x_name,
        )

    def line(
        self,
        points: Sequence[tuple[float, float | None]],
        color: str,
        *,
        dashed: bool = False,
        width: float = 1.5,
        step: bool = False,
    ) -> Markup:
        """Return a line through points; a missing value is a gap.

        Args:
            points: values of both axes.
            color: as CSS writes it.
            dashed: drawn so.
            width: in pixels.
            step: level from each point to the next.
        """
        parts: list[str] = []
        pen, before = "M", 0.0
        for x, y in points:
            if y is None or not math.isfinite(y):
                pen = "M"
                continue
            across, up = UNITS * self.x.at(x), UNITS * (1 - self.y.at(y))
            if step and pen == "L":
                parts.append(f"L{across:.1f} {before:.1f}")
            parts.append(f"{pen}{across:.1f} {up:.1f}")
            pen, before = "L", up
        return Markup(
            '<path d="{}" fill="none" stroke="{}" stroke-width="{}"{} vector-effect="non-scaling-stroke"/>'
        ).format("".join(parts), color, width, Markup(' stroke-dasharray="5 4"') if dashed else "")

    def area(self, rows: Sequence[tuple[float, float | None, float | None]], color: str) -> Markup:
        """Return the band between a lower and an upper value."""
        told = [(x, low, high) for x, low, high in rows if low is not None and high is not None]
        if not told:
            return Markup("")
        ends = [(x, high) for x, _, high in told] + [(x, low) for x, low, _ in reversed(told)]
        path = " ".join(f"{UNITS * self.x.at(x):.1f},{UNITS * (1 - self.y.at(y)):.1f}" for x, y in ends)
        return Markup('<polygon points="{}" fill="{}" opacity=".22"/>').format(path, color)

    def box(self, left: float, right: float, top: float, color: str, title: str) -> Markup:
        """Return a bar that starts at the lowest value."""
        begin, end = self.x.at(left), self.x.at(right)
        high = self.y.at(top)
        return Markup('<rect x="{}" width="{}" y="{}" height="{}" fill="{}"><title>{}</title></rect>').format(
            place(begin), place(max(0.001, end - begin)), place(1 - high), place(high), color, title
        )

    def point(
        self, x: float, y: float, color: str, title: str, *, radius: float = 3.0, hollow: bool = False
    ) -> Markup:
        """Return a mark of a value."""
        fill = (
            Markup('fill="none" stroke="{}" stroke-width="1.5"').format(color)
            if hollow
            else Markup('fill="{}"').format(color)
        )
        return Markup('<circle cx="{}" cy="{}" r="{}" {}><title>{}</title></circle>').format(
            place(self.x.at(x)), place(1 - self.y.at(y)), f"{radius:.3g}", fill, title
        )

    def upright(self, x: float, color: str, title: str = "", *, dashed: bool = False) -> Markup:
        """Return a line from bottom to top."""
        at = place(self.x.at(x))
        return Markup('<line x1="{}" x2="{}" y1="0" y2="100%" stroke="{}"{}><title>{}</title></line>').format(
            at, at, color, Markup(' stroke-dasharray="5 4"') if dashed else "", title
        )

    def level(self, y: float) -> Markup:
        """Return a dashed line from left to right."""
        at = place(1 - self.y.at(y))
        return Markup('<line x1="0" x2="100%" y1="{}" y2="{}" stroke="{}" stroke-dasharray="5 4"/>').format(
            at, at, hue("soft")
        )


def _grid(at: float) -> Markup:
    return Markup('<line x1="0" x2="100%" y1="{}" y2="{}" stroke="var(--grid)"/>').format(
        place(1 - at), place(1 - at)
    )
