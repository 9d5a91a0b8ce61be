"""From sampled stacks to the lines that the host's time goes to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hotloop.model.deep import Frame, HostLine, HostSamples, Sample
from hotloop.observe.decode.instrument_files import DeepFile, read_deep
from hotloop.observe.decode.spans import NS, Timeline
from hotloop.observe.steps.phase_at import PhaseAt
from hotloop.observe.steps.rhythm import find_anchor

WORKER = "worker"
_FETCH = ("torch", "utils", "data", "_utils", "fetch.py")
_IDLE = ("threading.py", "queue.py", "selectors.py", "connection.py", "socket.py", "subprocess.py")
"""Where a thread that waits for work is found."""
_STUCK_NS = 100_000_000
"""A look that comes so late counts as this much: the process was stopped, or the machine was busy with others."""

Row = tuple[tuple[int, ...], str, str | None]
"""Stack (the outermost frame first), process, phase."""


def read_host_samples(folder: Path, file: DeepFile, lead: Timeline) -> HostSamples:
    """Return the samples of the leading process and of its loader workers."""
    table = _Frames()
    spent: dict[Row, list[float]] = defaultdict(lambda: [0.0, 0])
    _add(spent, _training(file, lead, table))
    for worker in read_deep(folder, WORKER):
        if worker.value["parent"] == file.pid:
            _add(spent, _working(worker, table))
    samples = [Sample(*row, spent_s=time, num=int(num)) for row, (time, num) in spent.items()]
    samples.sort(key=lambda sample: -sample.spent_s)
    return HostSamples(
        num_steps=file.steps,
        window_s=file.window_s,
        interval_s=file.value["interval_s"],
        lines=tuple(lines_of(samples, table.frames)),
        frames=tuple(table.frames),
        samples=tuple(samples),
    )


class _Frames:
    """One table for the frames of all processes."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._known: dict[tuple[Any, ...], int] = {}

    def number(self, raw: Sequence[Any]) -> int:
        """Return a frame's number in this table."""
        key = tuple(raw)
        if key not in self._known:
            self._known[key] = len(self.frames)
            self.frames.append(Frame(*raw))
        return self._known[key]


def _add(spent: dict[Row, list[float]], rows: Iterable[tuple[Row, float]]) -> None:
    for row, time in rows:
        spent[row][0] += time
        spent[row][1] += 1


def _stacks(file: DeepFile, table: _Frames) -> list[tuple[int, ...]]:
    numbers = [table.number(raw) for raw in file.value["frames"]]
    return [tuple(numbers[at] for at in reversed(stack)) for stack in file.value["stacks"]]


def _training(file: DeepFile, lead: Timeline, table: _Frames) -> Iterator[tuple[Row, float]]:
    stacks = _stacks(file, table)
    anchor = find_anchor(lead.spans)
    infers = anchor is not None and anchor.infers
    phase_at = PhaseAt(lead, file.begin_ns * NS, file.end_ns * NS, infers=infers)
    for now, late, ident, stack in file.value["samples"]:
        own = ident == file.value["thread"]
        if own or _works(stacks[stack], table):
            # The stack is that of now: with the phase of an earlier moment a backward would stand in the forward.
            phase = phase_at(now * NS) if own else None
            yield (stacks[stack], "train" if own else "thread", phase), min(late, _STUCK_NS) * NS


def _works(stack: tuple[int, ...], table: _Frames) -> bool:
    """Whether a thread does something: it is not ours, and does not wait for work."""
    return not is_waiting(table.frames[stack[-1]]) and not any(
        table.frames[number].owner == "hotloop" for number in stack[-2:]
    )


def is_waiting(innermost: Frame) -> bool:
    """Whether a thread, by its innermost frame, waits for work."""
    return innermost.path.endswith(_IDLE)


def made_batch(stack: Sequence[Frame]) -> int | None:
    """Return at which frame of a loader worker's stack, outermost first, a batch begins to be made; None: at none."""
    return next((at for at, frame in enumerate(stack) if Path(frame.path).parts[-5:] == _FETCH), None)


def _working(worker: DeepFile, table: _Frames) -> Iterator[tuple[Row, float]]:
    """Yield what a worker did while it made batches; its waiting for orders is no work."""
    stacks = _stacks(worker, table)
    for _, late, _, stack in worker.value["samples"]:
        made = made_batch([table.frames[one] for one in stacks[stack]])
        if made is not None:
            yield (stacks[stack][made:], WORKER, None), min(late, _STUCK_NS) * NS


def lines_of(samples: Sequence[Sample], frames: Sequence[Frame]) -> Iterator[HostLine]:
    """Return the user's lines that samples were taken in, the most expensive first."""
    totals: dict[str, float] = defaultdict(float)
    spent: dict[tuple[Frame, str, str | None], list[float]] = defaultdict(lambda: [0.0, 0])
    for sample in samples:
        totals[sample.process] += sample.spent_s
        at = _users(sample.stack, frames)
        if at is not None:
            entry = spent[frames[at], sample.process, sample.phase]
            entry[0] += sample.spent_s
            entry[1] += sample.num
    for (frame, process, phase), (time, num) in sorted(spent.items(), key=lambda item: -item[1][0]):
        yield HostLine(
            path=frame.path,
            line=frame.line,
            function=frame.function,
            process=process,
            phase=phase,
            share=time / totals[process],
            spent_s=time,
            num=int(num),
        )


def _users(stack: tuple[int, ...], frames: Sequence[Frame]) -> int | None:
    """Return the innermost frame of the user's; where there is none, the innermost of an installed package."""
    inwards = list(reversed(stack))
    own = next((one for one in inwards if frames[one].owner == "user"), None)
    if own is not None:
        return own
    return next((one for one in inwards if _packaged(frames, one)), None)


def _packaged(frames: Sequence[Frame], one: int) -> bool:
    path = frames[one].path
    return frames[one].owner == "library" and ("site-packages" in path or "dist-packages" in path)
