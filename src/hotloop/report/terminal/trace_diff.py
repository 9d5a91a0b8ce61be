"""Trace comparisons as text that fits 80 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.quantities import duration
from hotloop.report.terminal.layout import facts, next_steps
from hotloop.report.terminal.screen import Screen
from hotloop.trace.compare.diff import Change, TraceDiff

LEAST = 0.0005
"""A change that would be told as 0.0%."""
_NAME_WIDTH = 40
_NUMBER = re.compile(r"_\d+$")


def show_diff(screen: Screen, diff: TraceDiff, top: int) -> None:
    """What became of the step, totals, the changes that matter, and what to type next."""
    screen.show(Text(f"{_verdict(diff)}\n", style="bold"))
    screen.show(facts([("before", diff.before), ("after", diff.after)], key_width=6))
    unit = "ms a step" if diff.per_step else "ms in the whole trace (one of them has no steps)"
    screen.show(Text(f"\n{unit}", style="dim"))
    screen.show(_totals(diff))
    tables = (
        ("operators", diff.operators),
        ("modules", diff.modules),
        ("slower in half precision", diff.slower_in_half),
    )
    for title, changes in tables:
        if changes:
            screen.show(Text())
            screen.show(_changes(title, _together(changes)[:top]))
    screen.show(next_steps([("what the device waits for now", ["hotloop", "trace", "analyze", diff.after])]))


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


def _together(changes: Sequence[Change]) -> list[Change]:
    """Changes of one operator in one kind of place as one row: layer 3 and layer 4 read alike."""
    found: dict[tuple[str, str], Change] = {}
    for change in changes:
        key = (_place(change.path), change.status)
        before = found.get(key)
        found[key] = change if before is None else _sum(before, change)
    return sorted(found.values(), key=lambda change: -abs(change.delta_us))


def _sum(a: Change, b: Change) -> Change:
    names = (
        "num_before",
        "num_after",
        "device_before_us",
        "device_after_us",
        "host_before_us",
        "host_after_us",
    )
    return msgspec.structs.replace(a, **{name: getattr(a, name) + getattr(b, name) for name in names})


def _totals(diff: TraceDiff) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for name, justify in (
        ("whole trace", "left"),
        ("before ms", "right"),
        ("after ms", "right"),
        ("change", "right"),
    ):
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    rows = [("step (median)", diff.step_before_us, diff.step_after_us)]
    if diff.device_before is not None and diff.device_after is not None:
        for name in ("span", "busy", "compute", "communication", "memory", "idle"):
            rows.append(
                (
                    f"device {name}",
                    *(getattr(d, f"{name}_us") for d in (diff.device_before, diff.device_after)),
                )
            )
    for cause in diff.idle_causes_before.keys() | diff.idle_causes_after.keys():
        pair = diff.idle_causes_before.get(cause, 0.0), diff.idle_causes_after.get(cause, 0.0)
        if any(pair):
            rows.append((f"  idle: {cause.removesuffix('_us')}", *pair))
    for name, before, after in rows:
        if before is not None and after is not None and (before or after):
            table.add_row(Text(name), f"{before / 1000:,.2f}", f"{after / 1000:,.2f}", _ratio(before, after))
    return table


def _changes(title: str, changes: Sequence[Change]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column(title, no_wrap=True, overflow="ellipsis")
    for name in ("before", "after", "change", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    for change in changes:
        calls = (
            f"{change.num_before:g}"
            if change.num_before == change.num_after
            else f"{change.num_before:g}>{change.num_after:g}"
        )
        style = "green" if change.delta_us < 0 else "red"
        table.add_row(
            Text(shown(_place(change.path))),
            f"{change.device_before_us / 1000:,.3f}",
            f"{change.device_after_us / 1000:,.3f}",
            Text(_ratio(change.device_before_us, change.device_after_us), style=style),
            calls,
        )
    return table


def _place(path: tuple[str, ...]) -> str:
    """The name, and the module or operator that it is in."""
    names = [
        _NUMBER.sub("", name.removeprefix("nn.Module: ")).removeprefix(
            "autograd::engine::evaluate_function: "
        )
        for name in path
    ]
    return (
        names[-1][:_NAME_WIDTH] if len(names) < 2 else f"{names[-1]} < {_tail(names[-2], 24)}"[:_NAME_WIDTH]
    )


def _ratio(before: float, after: float) -> str:
    if not before:
        return "new"
    return "gone" if not after else f"{after / before - 1:+.1%}"


def _tail(text: str, width: int) -> str:
    text = shown(text[-1000:])
    return text if len(text) <= width else "…" + text[-(width - 1) :]
