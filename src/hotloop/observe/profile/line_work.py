"""From the work of each place to that of each line with all that it calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hotloop.model.line_work import LineWork, StepWork
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import NS, Timeline

_LINE_NS = 10_000
"""A line of Python that calls no library takes 0.1 to 5 us, twice as much while it is followed: what takes more
computes something."""


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """As the instrument wrote it; see `probe.instruments.line_work`."""

    runs: int
    spent_ns: int
    operators: dict[str, int]
    operators_ns: int
    fixed_ns: int
    nodes: int
    backward_ns: int
    backward_fixed_ns: int


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    steps: int
    places: list[tuple[int, str, int, str]]
    rows: list[_Row]
    backward_ns: int


@dataclass
class _Sum:
    function: str
    runs: int = 0
    operators: int = 0
    nodes: int = 0
    forward_ns: int = 0
    repeated_ns: float = 0.0
    host_ns: float = 0.0
    backward_ns: int = 0
    backward_repeated_ns: float = 0.0


def read_line_work(folder: Path, file: DeepFile, lead: Timeline) -> StepWork:  # noqa: ARG001 - a reader
    """Return the lines of the leading process."""
    seen = msgspec.convert(file.value, _Seen)
    steps = max(1, seen.steps)
    sums: dict[tuple[str, int], _Sum] = {}
    for number, row in enumerate(seen.rows):
        outwards = _outwards(seen.places, number)
        for path, line, function in dict.fromkeys(outwards):
            _add(sums.setdefault((path, line), _Sum(function)), row, steps)
        sums[outwards[0][:2]].runs += row.runs
    return StepWork(
        num_steps=seen.steps,
        window_s=file.window_s,
        backward_s=seen.backward_ns * NS / seen.steps if seen.steps else None,
        lines=tuple(_line(place, one, seen) for place, one in sorted(sums.items())),
    )


def _outwards(places: Sequence[tuple[int, str, int, str]], number: int) -> list[tuple[str, int, str]]:
    """Return a place's line, and those that call it, outwards."""
    found = []
    while number >= 0:
        number, path, line, function = places[number]
        found.append((path, line, function))
    return found


def _add(total: _Sum, row: _Row, steps: int) -> None:
    operators = sum(row.operators.values())
    again = _repeated(operators / steps, len(row.operators))
    host_ns = row.spent_ns - row.operators_ns
    host_again_ns = min(host_ns, row.runs * _LINE_NS) * _repeated(row.runs / steps, 1)
    total.operators += operators
    total.nodes += row.nodes
    total.forward_ns += row.spent_ns
    total.repeated_ns += host_again_ns + row.fixed_ns * again
    total.host_ns += host_ns - host_again_ns
    total.backward_ns += row.backward_ns
    total.backward_repeated_ns += row.backward_fixed_ns * again


def _repeated(num: float, kinds: int) -> float:
    """Return the fraction of calls that are not the first of their kind."""
    return max(0.0, 1.0 - kinds / num) if num else 0.0


def _line(place: tuple[str, int], total: _Sum, seen: _Seen) -> LineWork:
    steps, backward_ns = max(1, seen.steps), max(1, seen.backward_ns)
    return LineWork(
        path=place[0],
        line=place[1],
        function=total.function,
        runs=total.runs / steps,
        operators=total.operators / steps,
        nodes=total.nodes / steps,
        forward_s=total.forward_ns * NS / steps,
        forward_repeated_s=total.repeated_ns * NS / steps,
        forward_host_s=total.host_ns * NS / steps,
        backward_share=total.backward_ns / backward_ns,
        backward_repeated_share=total.backward_repeated_ns / backward_ns,
    )
