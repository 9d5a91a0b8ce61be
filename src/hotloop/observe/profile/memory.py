"""From allocations to what a step takes, by phase and by module."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hotloop.model.step_memory import ModuleMemory, PhaseMemory, StepMemory
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import NS, Timeline
from hotloop.observe.profile.memory_account import account_of
from hotloop.observe.steps.step_windows import PHASES

BUCKETS = 400
"""Of the curve that is kept: the lowest and the highest moment of each."""
MAX_MODULES = 200

Times = npt.NDArray[np.int64]


def read_memory(folder: Path, file: DeepFile, lead: Timeline) -> StepMemory | None:  # noqa: ARG001 - a Reader
    """Return the memory of the leading process; None: nothing was allocated."""
    value = file.value
    times, held = _curve(value)
    if not len(times):
        return None
    first, last = int(value["ends_ns"][0]), int(value["ends_ns"][-1])
    kept = _extremes(held)
    return StepMemory(
        device=value["device"],
        num_steps=file.steps,
        window_s=(last - first) * NS,
        absolute=value["base_bytes"] is not None,
        peak_bytes=int(held.max()),
        times_s=tuple(float((times[at] - first) * NS) for at in kept),
        bytes=tuple(int(held[at]) for at in kept),
        steps_s=tuple((end - first) * NS for end in value["ends_ns"][1:]),
        phases=_phases(times, held, lead, (first, last), file.steps),
        modules=_modules(value, times, file.steps) if value["modules"] else None,
        account=account_of(value, file.steps, lead),
    )


def _curve(value: Mapping[str, Any]) -> tuple[Times, Times]:
    """Return when something was allocated or released, and what was held from then on; empty: nothing was."""
    times = np.frombuffer(b64decode(value["times_ns"]), "<i8")
    if not len(times):
        return times, times
    start = min(int(value["ends_ns"][0]), int(times[0]))
    times = np.concatenate([[start], times])
    held = np.concatenate([[0], np.cumsum(np.frombuffer(b64decode(value["sizes"]), "<i8"))])
    base = value["base_bytes"]
    return times, held + (base if base is not None else -min(0, int(held.min())))


def _extremes(held: Times) -> list[int]:
    if len(held) <= 2 * BUCKETS:
        return list(range(len(held)))
    edges = np.linspace(0, len(held), BUCKETS + 1).astype(int)
    kept = {0, len(held) - 1}
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        stretch = held[begin:end]
        kept |= {begin + int(stretch.argmin()), begin + int(stretch.argmax())}
    return sorted(kept)


def _at(times: Times, held: Times, now: int) -> int:
    """Return what is held at a moment."""
    place = int(np.searchsorted(times, now, side="right")) - 1
    return int(held[max(0, place)])


def _phases(
    times: Times, held: Times, lead: Timeline, window: tuple[int, int], steps: int
) -> dict[str, PhaseMemory]:
    peaks: dict[str, int] = {}
    changes: dict[str, int] = {}
    for span in lead.spans:
        begin, end = round(span.begin_s / NS), round(span.end_s / NS)
        if span.kind not in PHASES or begin < window[0] or end > window[1]:
            continue
        name = PHASES[span.kind].value
        before, after = _at(times, held, begin), _at(times, held, end)
        inside = held[np.searchsorted(times, begin) : np.searchsorted(times, end, side="right")]
        peak = max(before, after, int(inside.max()) if len(inside) else 0)
        peaks[name] = max(peak, peaks.get(name, 0))
        changes[name] = changes.get(name, 0) + after - before
    return {
        name: PhaseMemory(peak_bytes=peak, change_bytes=changes[name] / steps) for name, peak in peaks.items()
    }


def _modules(value: Mapping[str, Any], times: Times, steps: int) -> tuple[ModuleMemory, ...]:
    kept = _kept(value, times)
    rows = [
        ModuleMemory(
            path=row["path"],
            cls=row["cls"],
            parameter_bytes=row["parameters"],
            gradient_bytes=row["gradients"],
            buffer_bytes=row["buffers"],
            optimizer_bytes=row["optimizer"],
            activation_bytes=kept[number] // steps if number in kept else None,
        )
        for number, row in enumerate(value["modules"])
    ]
    largest = sorted(rows, key=lambda row: -row.total_bytes)
    return tuple(row for row in largest[:MAX_MODULES] if row.total_bytes)


def _kept(value: Mapping[str, Any], times: Times) -> dict[int, int]:
    """Return what the calls of each module allocated and left to the backward, without the calls inside them.

    It is what outlives the call of the whole model that it was made in.
    """
    calls = sorted(value["calls"], key=lambda call: call[1])
    own: dict[int, int] = {number: 0 for number, *_ in calls if number >= 0}
    released = _releases(value, times)
    sizes = np.frombuffer(b64decode(value["sizes"]), "<i8").tolist()
    makers = _makers(calls, times[1:].tolist())
    for at, (size, (inner, outer_end)) in enumerate(zip(sizes, makers, strict=True)):
        if size > 0 and released[at] > outer_end and inner in own:
            own[inner] += size
    return own


def _releases(value: Mapping[str, Any], times: Times) -> dict[int, int]:
    """Return when each allocation, by its number, was released; what is left at the end never was."""
    addresses = np.frombuffer(b64decode(value["addresses"]), "<u8").tolist()
    sizes = np.frombuffer(b64decode(value["sizes"]), "<i8").tolist()
    held: dict[int, int] = {}
    released = dict.fromkeys(range(len(sizes)), int(times[-1]) + 1)
    for at, (address, size) in enumerate(zip(addresses, sizes, strict=True)):
        if size > 0:
            held[address] = at
        elif address in held:
            released[held.pop(address)] = int(times[at + 1])
    return released


def _makers(calls: Sequence[Sequence[int]], moments: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield for each moment the module whose call is under way, the innermost, and when the outermost call ends.

    Args:
        calls: in the order of their beginnings.
        moments: in order.
    """
    under_way: list[Sequence[int]] = []
    to_come = iter(calls)
    call = next(to_come, None)
    for now in moments:
        while call is not None and call[1] <= now:
            _end_before(under_way, call[1])
            under_way.append(call)
            call = next(to_come, None)
        _end_before(under_way, now)
        yield (under_way[-1][0], under_way[0][2]) if under_way else (-1, now)


def _end_before(under_way: list[Sequence[int]], now: int) -> None:
    while under_way and under_way[-1][2] < now:
        under_way.pop()
