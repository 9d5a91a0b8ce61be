"""Read what the operators' and the FLOPs' windows saw."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hotloop.model.operators import Flops, Operator, Operators, Product
from hotloop.observe.decode.instrument_files import DeepFile, has_seen, result_of
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.detailed_timeline import Spans, detailed_timeline

US = 1e-6
_LEAST = 1e-4
"""Share of the time below which an operator is not listed: 10,000 like it would not take it all."""
_Shapes = tuple[tuple[int, ...], ...]


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    shapes: _Shapes
    count: int
    self_us: float
    device_us: float
    bytes: int
    products: list[tuple[str, _Shapes, int]]
    """Name, shapes and number of the products whose time is here."""


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[_Row]
    num: int
    self_us: float
    device_us: float | None
    busy_us: float | None = None
    spans: Spans | None = None


class _Counted(msgspec.Struct, frozen=True, kw_only=True):
    products: list[Product]
    unknown: tuple[str, ...]


def read_operators(folder: Path, file: DeepFile, timeline: Timeline) -> Operators:
    """Return the operators per step, the FLOPs of their products where those were counted."""
    seen = msgspec.convert(file.value, _Seen)
    each = _flop_of_one(folder, file.pid)
    operators = [_operator(row, seen, file.steps, each) for row in seen.rows]
    return Operators(
        num_steps=file.steps,
        window_s=file.window_s,
        num=seen.num / file.steps,
        self_s=seen.self_us * US / file.steps,
        device_s=None if seen.device_us is None else seen.device_us * US / file.steps,
        busy_s=None if seen.busy_us is None else seen.busy_us * US / file.steps,
        operators=tuple(
            sorted((one for one in operators if one.share >= _LEAST), key=lambda one: -one.share)
        ),
        timeline=detailed_timeline(seen.spans, timeline, folder, file.pid) if seen.spans else None,
    )


def _operator(row: _Row, seen: _Seen, steps: int, each: dict[tuple[str, _Shapes], float]) -> Operator:
    on_device = bool(seen.device_us)
    spent, total = (row.device_us, seen.device_us) if on_device else (row.self_us, seen.self_us)
    flop = sum(each.get((name, shapes), 0.0) * count for name, shapes, count in row.products)
    return Operator(
        name=row.name,
        shapes=row.shapes,
        count=row.count / steps,
        self_s=row.self_us * US / steps,
        device_s=row.device_us * US / steps if seen.device_us is not None else None,
        share=spent / total if total else 0.0,
        allocated_bytes=row.bytes / steps,
        flop=flop / steps or None,
    )


def _flop_of_one(folder: Path, pid: int) -> dict[tuple[str, _Shapes], float]:
    """Return the FLOPs of one call of each product; empty where they were not counted in the same run."""
    file = result_of(folder, "flops", pid)
    if file is None or not has_seen(file):
        return {}
    counted = msgspec.convert(file.value, _Counted)
    return {(one.name, one.shapes): one.flop / one.count for one in counted.products}


def read_flops(folder: Path, file: DeepFile, timeline: Timeline) -> Flops:  # noqa: ARG001 - a Reader
    """Return the products per step."""
    counted = msgspec.convert(file.value, _Counted)
    products = [
        msgspec.structs.replace(one, count=one.count / file.steps, flop=one.flop / file.steps)
        for one in counted.products
    ]
    return Flops(
        flop=sum(one.flop for one in products),
        products=tuple(sorted(products, key=lambda one: -one.flop)),
        unknown=counted.unknown,
    )
