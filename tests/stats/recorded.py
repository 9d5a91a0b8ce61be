"""Step times of real programs, recorded step by step: `recorded_steps.npz`, made by `benchmarks.noise`.

Six programs (convolutional, MLP with loader, transformer, graph, GAN, VAE), two identical processes at a time, on a
virtual machine with two cores of an AMD EPYC (family 26), 2026-11-22. Conditions: `quiet` (threads waited for a core 3
to 6% of their time), `crowded` (others computed on the machine, now one, now several, default waiting), `busy, passive`
(one process beside it burns a core all the time, and `OMP_WAIT_POLICY=PASSIVE`).

Draw like this:

    machine = RecordedMachine(rng, "gan", "quiet")   # starts at a random moment of the recording
    factor = machine.process()                       # how much slower this process is for as long as it lives
    times = machine.step_s * factor * machine.steps(12)

Two processes that take turns draw from one machine, one after the other: steps come in the order in which they were
recorded, so autocorrelation, drift over seconds, spikes and tails are the machine's own. A gain of 1.2 is a division of
one process's times by 1.2.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_FILE = Path(__file__).with_name("recorded_steps.npz")


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one recording: blocks of one pair of processes."""

    program: str
    condition: str
    pair: int
    grain_s: float | None
    """How long an arm ran before the other took over; None: the first one alone."""
    turns: tuple[int, ...]
    """Which of the two ran each block: A B B A."""
    step_s: tuple[Array, ...]
    """Of each block, every step."""
    running_s: tuple[float, ...]
    """Of each block, what its threads ran."""
    waiting_s: tuple[float, ...]
    """Of each block, what its threads waited for a core."""


_TICK_S = 1e-7


def save(segments: list[Segment], path: Path = _FILE) -> None:
    """Write recordings as one compact file."""
    rows = [
        {
            "program": segment.program,
            "condition": segment.condition,
            "pair": segment.pair,
            "grain_s": segment.grain_s,
            "turns": segment.turns,
            "lengths": [len(block) for block in segment.step_s],
            "running_s": [round(value, 4) for value in segment.running_s],
            "waiting_s": [round(value, 4) for value in segment.waiting_s],
        }
        for segment in segments
    ]
    steps = np.concatenate([block for segment in segments for block in segment.step_s])
    ticks = np.round(steps / _TICK_S).astype(np.uint32)
    np.savez_compressed(path, index=np.array(json.dumps(rows)), ticks=ticks)


@cache
def load(path: Path = _FILE) -> tuple[Segment, ...]:
    """Return every recording."""
    with np.load(path) as file:
        rows, steps = json.loads(str(file["index"])), file["ticks"] * _TICK_S
    segments, at = [], 0
    for row in rows:
        ends = at + np.cumsum(row.pop("lengths"))
        blocks = np.split(steps[at : ends[-1]], ends[:-1] - at)
        at = int(ends[-1])
        segments.append(msgspec.convert({**row, "step_s": ()}, Segment))
        segments[-1] = msgspec.structs.replace(segments[-1], step_s=tuple(blocks))
    return tuple(segments)


class RecordedMachine:
    """A machine that disturbs steps as it did when it was recorded.

    Args:
        rng: chooses the moment, and the processes.
        program: one of the six.
        condition: `quiet`, `crowded` or `busy, passive`.
    """

    def __init__(self, rng: np.random.Generator, program: str, condition: str) -> None:
        self._rng = rng
        self._course, self._pairs, self.step_s = _recording(program, condition)
        self._at = int(rng.integers(len(self._course)))

    def process(self) -> float:
        """Return how much slower a fresh process is than the others, as a factor."""
        return float(np.exp(self._rng.choice([-0.5, 0.5]) * self._rng.choice(self._pairs)))

    def steps(self, num: int) -> Array:
        """Return the next steps' times, relative to the median."""
        picked = np.arange(self._at, self._at + num) % len(self._course)
        self._at = int(picked[-1]) + 1
        return self._course[picked]


@cache
def _recording(program: str, condition: str) -> tuple[Array, tuple[float, ...], float]:
    """Relative steps in the order of time, log ratios of pairs of processes, and the median step in seconds."""
    found = [one for one in load() if (one.program, one.condition) == (program, condition)]
    if not found:
        raise ValueError(f"nothing was recorded of {program!r}, {condition!r}")
    course = np.concatenate([_relative(segment) for segment in found])
    pairs = tuple(_log_ratio(segment) for segment in found if segment.grain_s is not None)
    return course, pairs, float(np.median(np.concatenate([block for one in found for block in one.step_s])))


def recorded(condition: str) -> list[str]:
    """Return the programs that were recorded in a condition."""
    return list(dict.fromkeys(one.program for one in load() if one.condition == condition))


def _relative(segment: Segment) -> Array:
    """The segment's steps in the order of time, each over its own process's median."""
    turns = np.repeat(segment.turns, [len(block) for block in segment.step_s])
    steps = np.concatenate(segment.step_s)
    for turn in np.unique(turns):
        steps[turns == turn] /= np.median(steps[turns == turn])
    return steps


def _log_ratio(segment: Segment) -> float:
    """Of the two processes' median steps."""
    medians = [
        np.median(
            np.concatenate([b for b, t in zip(segment.step_s, segment.turns, strict=True) if t == turn])
        )
        for turn in (0, 1)
    ]
    return float(np.log(medians[0] / medians[1]))
