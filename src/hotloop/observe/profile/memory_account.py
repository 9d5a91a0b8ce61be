"""The account of the peak: which blocks are there at the highest moment, by class, line and module."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hotloop.model.memory_account import HeldLine, HeldTensor, PeakAccount, StepPeak
from hotloop.model.memory_plan import Held
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.memory_blocks import FOREVER, Block, blocks_of
from hotloop.observe.profile.memory_lines import Maker, MemoryLines
from hotloop.observe.profile.memory_phases import MemoryPhases
from hotloop.observe.profile.module_at import ModuleAt

MOST_NAMED = 12
METHOD = (
    "every allocation and release of torch's allocator over the steps, with the operation that ran meanwhile; what was "
    "there before by a walk over the program's tensors"
)
Times = np.ndarray[Any, np.dtype[np.int64]]


def account_of(value: Mapping[str, Any], num_steps: int, lead: Timeline) -> PeakAccount | None:
    """Return the account; None: nothing was allocated, or the instrument is of an earlier version.

    Args:
        value: what the instrument saw.
        num_steps: whole steps that it watched.
        lead: the records of its process.
    """
    if not value["sizes"] or "base" not in value:
        return None
    ends: list[int] = value["ends_ns"]
    phases = MemoryPhases(lead.spans, ends[0], ends[-1])
    blocks = blocks_of(value, phases)
    _fill_up(blocks, value["base_bytes"])
    times, held = _curve(blocks, ends[0])
    if not len(times):
        return None
    top = int(held.argmax())
    makers = _Makers(value, phases)
    moment = int(times[top])
    there = [each for each in blocks if each.alive(moment)]
    reached = makers.of(_newest(there))
    peaks = _step_peaks(times, held, ends)
    return PeakAccount(
        device=value["device"],
        peak_bytes=sum(each.num_bytes for each in there),
        low_bytes=min(peaks),
        high_bytes=max(peaks),
        num_steps=num_steps,
        phase=phases.at(moment),
        reached_by=_as_line(reached, _newest(there).num_bytes) if reached else None,
        held=Held(
            by_class=_by_class(there),
            by_module=_by_module(there, makers),
            by_line=_by_line(there, makers),
        ),
        lines=_lines(there, makers),
        activations=_lines(_most_saved(blocks, phases), makers, "activations"),
        others=_others(there),
        phases=_phase_peaks(blocks, times, held, phases),
        method=METHOD,
    )


class _Makers:
    """Who made a block: the operation, and the module that ran."""

    def __init__(self, value: Mapping[str, Any], phases: MemoryPhases) -> None:
        self._lines = MemoryLines(value, phases)
        self._modules = ModuleAt(value["calls"], value["modules"])
        self.of: Callable[[Block], Maker | None] = lambda block: (
            self._lines.maker(block.begin_ns) if block.begin_ns else None
        )

    def module(self, block: Block) -> str:
        maker = self.of(block)
        return self._modules.path(maker.forward_ns if maker else block.begin_ns)


def _fill_up(blocks: list[Block], base_bytes: int | None) -> None:
    """Add what the allocator had given out before the window to nobody who was found, where it tells."""
    if base_bytes is None:
        return
    missing = base_bytes - sum(each.num_bytes for each in blocks if not each.begin_ns)
    if missing > 0:
        blocks.append(Block(missing, 0, FOREVER, "unattributed"))


def _curve(blocks: Sequence[Block], begin_ns: int) -> tuple[Times, Times]:
    """Return the moments at which something changed, and what is held from then on."""
    changes = [(max(begin_ns, each.begin_ns), each.num_bytes) for each in blocks]
    changes += [(each.end_ns, -each.num_bytes) for each in blocks if each.end_ns != FOREVER]
    changes.sort(key=lambda change: (change[0], change[1]))
    table = np.array(changes, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], np.cumsum(table[:, 1])


def _newest(blocks: Iterable[Block]) -> Block:
    return max(blocks, key=lambda each: each.begin_ns)


def _step_peaks(times: Times, held: Times, ends: Sequence[int]) -> list[int]:
    peaks = []
    for begin, end in itertools.pairwise(ends):
        inside = held[np.searchsorted(times, begin) : np.searchsorted(times, end, side="right")]
        if len(inside):
            peaks.append(int(inside.max()))
    return peaks or [int(held.max())]


def _by_class(there: Iterable[Block]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for each in there:
        sums[each.name] += each.num_bytes
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


def _made(there: Iterable[Block], *names: str) -> Iterable[Block]:
    return (each for each in there if each.name in (names or ("activations", "temporaries")))


def _by_module(there: Iterable[Block], makers: _Makers) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for each in _made(there):
        sums[makers.module(each)] += each.num_bytes
    return _largest(sums)


def _by_line(there: Iterable[Block], makers: _Makers) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for each in _made(there):
        maker = makers.of(each)
        sums[f"{maker.path}:{maker.line}" if maker else ""] += each.num_bytes
    return _largest(sums)


def _largest(sums: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(sums.items(), key=lambda pair: -pair[1])[:MOST_NAMED])


def _most_saved(blocks: Sequence[Block], phases: MemoryPhases) -> list[Block]:
    """Return what is there when the backward begins that has most activations."""
    candidates = [[each for each in blocks if each.alive(begin)] for begin in phases.backwards]
    return max(candidates, key=lambda there: _by_class(there).get("activations", 0), default=[])


def _lines(there: Iterable[Block], makers: _Makers, *names: str) -> tuple[HeldLine, ...]:
    groups: dict[tuple[str, int, bool], list[tuple[Block, Maker]]] = defaultdict(list)
    for each in _made(there, *names):
        maker = makers.of(each)
        if maker is not None:
            groups[maker.path, maker.line, maker.in_backward].append((each, maker))
    rows = []
    for group in groups.values():
        _, maker = max(group, key=lambda pair: pair[0].num_bytes)
        total = sum(each.num_bytes for each, _ in group)
        rows.append(_as_line(maker, total, len(group)))
    return tuple(sorted(rows, key=lambda row: -row.held_bytes)[:MOST_NAMED])


def _as_line(maker: Maker, num_bytes: int, num: int = 1) -> HeldLine:
    return HeldLine(
        path=maker.path,
        line=maker.line,
        function=maker.function,
        operator=maker.operator,
        held_bytes=num_bytes,
        num=num,
        shape=maker.shape or None,
        dtype=maker.dtype,
        in_backward=maker.in_backward,
    )


def _others(there: Iterable[Block]) -> tuple[HeldTensor, ...]:
    rows = [
        HeldTensor(
            held_bytes=each.num_bytes,
            shape=tuple(each.row.get("shape", ())),
            dtype=each.row.get("dtype", "").removeprefix("torch."),
            keeps_graph=each.row["graph"],
        )
        for each in _made(there, "other")
        if each.row is not None
    ]
    return tuple(sorted(rows, key=lambda row: -row.held_bytes)[:MOST_NAMED])


def _phase_peaks(
    blocks: Sequence[Block], times: Times, held: Times, phases: MemoryPhases
) -> dict[str, StepPeak]:
    tops: dict[str, int] = {}
    for at, time in enumerate(times.tolist()):
        name = phases.at(time)
        if name not in tops or held[at] > held[tops[name]]:
            tops[name] = at
    return {
        name: StepPeak(
            peak_bytes=int(held[at]),
            by_class=_by_class(each for each in blocks if each.alive(int(times[at]))),
        )
        for name, at in tops.items()
    }
