"""Which function draws which kind of chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from hotloop.report.document import Chart
from hotloop.report.html.drawing import plots, rows, timeline_and_flame

DRAWN: dict[str, Callable[[dict[str, Any]], Markup]] = {
    "waterfall": rows.waterfall,
    "phases": rows.phases,
    "bars": rows.rates,
    "stacks": rows.stacks,
    "steps": plots.steps,
    "distribution": plots.distribution,
    "roofline": plots.roofline,
    "curves": plots.curves,
    "lines": plots.lines,
    "predictions": plots.predictions,
    "blocks": plots.blocks,
    "holds": plots.holds,
    "timeline": timeline_and_flame.timeline,
    "flame": timeline_and_flame.flame,
}


def draw(chart: Chart) -> Markup:
    """Return the picture of a chart."""
    return DRAWN[chart.kind](chart.data)
