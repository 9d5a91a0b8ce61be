"""What became of the step from one trace to another: totals, and the changes that matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from hotloop.model.quantities import duration
from hotloop.report.document import Block, Facts, Note, Table
from hotloop.report.sections.trace.cells import table, tail_of
from hotloop.trace.compare.diff import Change, TraceDiff

LEAST = 0.0005
"""A change that would be told as 0.0%."""
_NAME_WIDTH = 40
_NUMBER = re.compile(r"_\d+$")
_PREFIXES = ("nn.Module: ", "autograd::engine::evaluate_function: ")
_PARTS = ("span", "busy", "compute", "communication", "memory", "idle")
_FIGURES = (
    "num_before",
    "num_after",
    "device_before_us",
    "device_after_us",
    "host_before_us",
    "host_after_us",
)


def differences(diff: TraceDiff, top: int) -> Iterator[Block]:
    """Yield what became of the step, totals, and the changes that matter.

    Args:
        diff: of two traces.
        top: rows of a table.
    """
    yield Note(_verdict(diff), "strong")
    unit = "ms a step" if diff.per_step else "ms in the whole trace (one of them has no steps)"
    yield Facts((("before", diff.before), ("after", diff.after), ("figures", unit)))
    totals = list(_totals(diff))
    if totals:
        yield table(("a step" if diff.per_step else "whole trace", "before ms", "after ms", "change"), totals)
    for title, changes in (
        ("operators", diff.operators),
        ("modules", diff.modules),
        ("slower in half precision", diff.slower_in_half),
    ):
        if changes:
            yield _changes(title, _together(changes)[:top])


def _verdict(diff: TraceDiff) -> str:
    what, before, after = "A step", diff.step_before_us, diff.step_after_us
    if not before or not after:
        if diff.device_before is None or diff.device_after is None or not diff.device_before.span_us:
            return "Neither steps nor a device are in both traces: only operators are compared."
        what, before, after = "The device's work", diff.device_before.span_us, diff.device_after.span_us
    change = after / before - 1
    if abs(change) < LEAST:
        return f"{what} takes as long as before: {duration(after / 1e6)}."
    became = f"{abs(change):.1%} {'longer' if change > 0 else 'shorter'}"
    return f"{what} became {became}: {duration(before / 1e6)}, then {duration(after / 1e6)}."


def _totals(diff: TraceDiff) -> Iterator[tuple[str, ...]]:
    for name, before, after in _pairs(diff):
        if before is not None and after is not None and (before or after):
            yield name, f"{before / 1000:,.2f}", f"{after / 1000:,.2f}", _ratio(before, after)


def _pairs(diff: TraceDiff) -> Iterator[tuple[str, float | None, float | None]]:
    yield "step", diff.step_before_us, diff.step_after_us
    steps = (diff.num_steps_before, diff.num_steps_after) if diff.per_step else (1, 1)
    if diff.device_before is not None and diff.device_after is not None:
        for name in _PARTS:
            before, after = (getattr(one, f"{name}_us") for one in (diff.device_before, diff.device_after))
            yield f"device {name}", before / steps[0], after / steps[1]
    causes_before, causes_after = diff.idle_causes_before, diff.idle_causes_after
    for cause in {**causes_before, **causes_after}:
        name = f"  idle: {cause.removesuffix('_us')}"
        yield name, causes_before.get(cause, 0.0) / steps[0], causes_after.get(cause, 0.0) / steps[1]


def _together(changes: Sequence[Change]) -> list[Change]:
    """Changes of one operator in one kind of place as one row: layer 3 and layer 4 read alike."""
    found: dict[tuple[str, str], Change] = {}
    for change in changes:
        key = (_place(change.path), change.status)
        before = found.get(key)
        found[key] = change if before is None else _sum(before, change)
    return sorted(found.values(), key=lambda change: -abs(change.delta_us))


def _sum(a: Change, b: Change) -> Change:
    return msgspec.structs.replace(a, **{name: getattr(a, name) + getattr(b, name) for name in _FIGURES})


def _changes(title: str, changes: Sequence[Change]) -> Table:
    return table((title, "before", "after", "change", "calls"), [_change(one) for one in changes])


def _change(one: Change) -> tuple[str, ...]:
    after = "" if one.num_before == one.num_after else f">{one.num_after:g}"
    return (
        _place(one.path),
        f"{one.before_us / 1000:,.3f}",
        f"{one.after_us / 1000:,.3f}",
        _ratio(one.before_us, one.after_us),
        f"{one.num_before:g}{after}",
    )


def _place(path: tuple[str, ...]) -> str:
    """The name, and the module or operator that it is in."""
    names = [_NUMBER.sub("", _without_prefixes(name)) for name in path[-2:]]
    inside = f" < {tail_of(names[-2], 24)}" if len(names) > 1 else ""
    return f"{names[-1]}{inside}"[:_NAME_WIDTH]


def _without_prefixes(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _ratio(before: float, after: float) -> str:
    if not before:
        return "new"
    return "gone" if not after else f"{after / before - 1:+.1%}"
