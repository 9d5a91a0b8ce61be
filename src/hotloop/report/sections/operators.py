"""The most expensive operators of a step, and its arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hotloop.model.operators import Efficiency, Operator, Operators
from hotloop.model.quantities import counted, duration, percent, scaled
from hotloop.report.document import Facts, Table

MAX_ROWS = 12


def operators(seen: Operators, *, num: int = MAX_ROWS) -> Table:
    """Return the operators that take most of the time."""
    where, spent = ("device", seen.device_s) if seen.device_s else ("host", seen.self_s)
    return Table(
        ("operator", "calls", "time", "share", "FLOP", "shapes"),
        tuple(_row(one) for one in _apart(seen.operators)[:num]),
        caption=f"Operators: {counted(round(seen.num), 'call')} a step, {duration(spent or 0.0)} of {where} time "
        f"(of {counted(seen.num_steps, 'further step')} under a profiler)",
        figures=(1, 2, 3, 4),
    )


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
    return " ".join("x".join(map(str, shape)) for shape in one.shapes)


def _row(one: Operator) -> tuple[str, ...]:
    return (
        one.name.removeprefix("aten::"),
        f"{one.count:,.0f}",
        duration(one.device_s if one.device_s else one.self_s),
        percent(one.share),
        "" if one.flop is None else scaled(one.flop),
        _shapes(one),
    )


def efficiency(seen: Efficiency) -> Facts:
    """Return the arithmetic of a step, with the share of the machine's peak or why there is none."""
    rows = [("FLOPs", f"{scaled(seen.flop)}FLOP a step, {scaled(seen.flop_per_s)}FLOP/s in {seen.precision}")]
    if seen.mfu is not None and seen.peak_flop_per_s is not None:
        peak = f"{scaled(seen.peak_flop_per_s)}FLOP/s"
        rows.append(
            (
                "MFU",
                f"{percent(seen.mfu)} of {peak}, the fastest matrix product or convolution measured here",
            )
        )
    else:
        rows.append(("MFU", f"not measured: {seen.why_no_peak}"))
    return Facts(tuple(rows))
