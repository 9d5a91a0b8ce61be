"""The most expensive operators of a step and its arithmetic, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.operators import Efficiency, Operator, Operators
from hotloop.model.quantities import counted, duration, percent, scaled
from hotloop.report.terminal.layout import facts

NUM = 8
"""Operators shown; all are in the JSON."""
_NAME_WIDTH, _SHAPES_WIDTH = 24, 22


def operators(seen: Operators) -> RenderableType:
    """Return the operators that take most of the time."""
    where, spent = ("device", seen.device_s) if seen.device_s else ("host", seen.self_s)
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("operator", no_wrap=True)
    for heading in ("calls", "time", "share", "FLOP"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("shapes", no_wrap=True)
    for one in _apart(seen.operators)[:NUM]:
        table.add_row(*_row(one))
    says = (
        f"operators: {counted(round(seen.num), 'call')} a step, {duration(spent or 0.0)} of {where} time "
        f"(of {counted(seen.num_steps, 'further step')} under a profiler)"
    )
    return Group(Text(says), table)


def _apart(every: Sequence[Operator]) -> list[Operator]:
    """Those of one name that no shapes tell apart are one row."""
    rows: dict[tuple[str, str], Operator] = {}
    for one in every:
        key = (one.name, _shapes(one))
        rows[key] = _joined(rows[key], one) if key in rows else one
    return sorted(rows.values(), key=lambda one: -one.share)


def _joined(one: Operator, other: Operator) -> Operator:
    device = [spent for spent in (one.device_s, other.device_s) if spent is not None]
    flop = [num for num in (one.flop, other.flop) if num is not None]
    return msgspec.structs.replace(
        one,
        count=one.count + other.count,
        self_s=one.self_s + other.self_s,
        device_s=sum(device) if device else None,
        share=one.share + other.share,
        allocated_bytes=one.allocated_bytes + other.allocated_bytes,
        flop=sum(flop) if flop else None,
    )


def _shapes(one: Operator) -> str:
    return _cut(" ".join("x".join(map(str, shape)) for shape in one.shapes), _SHAPES_WIDTH)


def _row(one: Operator) -> Iterator[str]:
    yield _cut(one.name.removeprefix("aten::"), _NAME_WIDTH)
    yield f"{one.count:,.0f}"
    yield duration(one.device_s if one.device_s else one.self_s)
    yield percent(one.share)
    yield "" if one.flop is None else scaled(one.flop)
    yield _shapes(one)


def _cut(text: str, width: int) -> str:
    text = shown(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def efficiency(seen: Efficiency) -> RenderableType:
    """Return the arithmetic of a step in one line, with the share of the machine's peak or why there is none."""
    says = f"{scaled(seen.flop)}FLOP a step, {scaled(seen.flop_per_s)}FLOP/s in {seen.precision}"
    if seen.mfu is not None and seen.peak_flop_per_s is not None:
        says += f", {percent(seen.mfu)} of the {scaled(seen.peak_flop_per_s)}FLOP/s of the fastest matrix product or "
        says += "convolution measured here (MFU)"
    else:
        says += f"; {seen.why_no_peak}"
    return facts([("FLOPs", says)], key_width=7)
