"""An Observation of a process that runs already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import psutil

from hotloop.machine.host.identity import identity
from hotloop.model.deep import Deep, Frame, HostSamples, Sample
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Coverage, Memory, Observation, Phase, RunAccount
from hotloop.model.program import ProgramFacts
from hotloop.model.secrets import redacted_words
from hotloop.observe.attach.frames import phase_of, read_frame
from hotloop.observe.attach.py_spy import RATE, sampled_stacks
from hotloop.observe.profile.host_samples import is_waiting, lines_of, made_batch

_UNSEEN = "it was looked at from outside, while it ran"
_TRAINS = (Phase.BACKWARD, Phase.OPTIMIZER, Phase.FORWARD)
_Stacks = Sequence[tuple[tuple[str, ...], int]]


def look(
    pid: int,
    seconds: float,
    stacks: Callable[[int, float], _Stacks] = sampled_stacks,
) -> Observation:
    """Return what the Python frames of a process and its children tell; it is neither stopped nor changed.

    Args:
        pid: of the process, or of one that started it.
        seconds: to look.
        stacks: looks.

    Raises:
        HotloopError: there is no such process, it cannot be read, or none of its threads ran Python.
    """
    command = _command(pid)
    host, ranks = _samples(stacks(pid, seconds), seconds)
    if not host.samples:
        raise HotloopError(
            f"process {pid} and its children ran no Python in these {seconds:.0f} s",
            "give the process that trains: pgrep -af train.py",
            ExitCode.MACHINE,
        )
    return Observation(
        command=command,
        step=None,
        phases={},
        ranks=(),
        memory=Memory(peak_bytes=None, device="host", method=_UNSEEN),
        run=RunAccount(wall_s=seconds, parts={}),
        coverage=(*_unseen(host), *ranks),
        program=ProgramFacts(),
        anchor=None,
        machine=msgspec.to_builtins(identity()),
        exit_code=None,
        deep=Deep(host=host),
    )


def _command(pid: int) -> tuple[str, ...]:
    try:
        return redacted_words(psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess as error:
        raise HotloopError(f"there is no process {pid}", "pgrep -af train.py lists some") from error
    except psutil.AccessDenied:
        return ()


@dataclass(frozen=True)
class _Seen:
    """One stack of one thread."""

    thread: str
    """With its process: unique."""
    processes: tuple[str, ...]
    """Its own is the last, before it are those that started it; empty: there is one alone."""
    frames: tuple[int, ...]
    num: int


def _samples(stacks: _Stacks, seconds: float) -> tuple[HostSamples, list[Coverage]]:
    """Return the samples of the process that trains, and what is left out: other ranks, with their workers."""
    numbers: dict[Frame, int] = {}
    every = [_read(stack, num, numbers) for stack, num in stacks]
    frames = list(numbers)
    rows: dict[tuple[tuple[int, ...], str, str | None], int] = defaultdict(int)
    lead = _training_thread(every, frames)
    shown = next((one.processes for one in every if one.thread == lead), ())
    trainers = {one.processes[-1] for one in every if one.processes and _trains(one, frames)}
    others = trainers - set(shown)
    seen = [one for one in every if not others & set(one.processes)]
    for one in seen:
        own = [frames[at] for at in one.frames]
        if one.thread == lead:
            rows[one.frames, "train", phase_of(own).value] += one.num
        elif (made := made_batch(own)) is not None:
            rows[one.frames[made:], "worker", None] += one.num
        elif own and not is_waiting(own[-1]) and not any("_worker_loop" in each.function for each in own):
            rows[one.frames, "thread", None] += one.num
    samples = [Sample(*row, spent_s=num / RATE, num=num) for row, num in rows.items()]
    samples.sort(key=lambda sample: -sample.spent_s)
    host = HostSamples(
        num_steps=None,
        window_s=seconds,
        interval_s=1 / RATE,
        lines=tuple(lines_of(samples, frames)),
        frames=tuple(frames),
        samples=tuple(samples),
    )
    return host, [_left_out(shown, len(others))] if others else []


def _left_out(shown: tuple[str, ...], num: int) -> Coverage:
    name = shown[-1].partition(":")[0]
    return Coverage("ranks", f"{num + 1} processes train there, and {name} is shown; --pid takes any of them")


def _trains(one: _Seen, frames: Sequence[Frame]) -> bool:
    own = [frames[at] for at in one.frames]
    return made_batch(own) is None and phase_of(own) in _TRAINS


def _read(stack: tuple[str, ...], num: int, numbers: dict[Frame, int]) -> _Seen:
    """py-spy puts `process 12:"python train.py"` and `thread (15): MainThread` before the frames."""
    heads = [word for word in stack if word.startswith(("process ", "thread (")) and ".py:" not in word]
    frames = [read_frame(word) for word in stack if word not in heads]
    processes = tuple(word for word in heads if word.startswith("process "))
    return _Seen(
        ";".join(heads), processes, tuple(numbers.setdefault(frame, len(numbers)) for frame in frames), num
    )


def _training_thread(seen: Sequence[_Seen], frames: Sequence[Frame]) -> str:
    """Return the thread most often seen in a forward, backward or optimizer step, or else the busiest main thread."""
    trained: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for one in seen:
        own = [frames[at] for at in one.frames]
        if made_batch(own) is None:
            trained[one.thread] += one.num * (phase_of(own) in _TRAINS)
            ran[one.thread] += one.num * ("MainThread" in one.thread)
    most = trained.most_common(1) or [("", 0)]
    return most[0][0] if most[0][1] else (ran.most_common(1) or most)[0][0]


def _unseen(host: HostSamples) -> list[Coverage]:
    """Return what cannot be told from outside."""
    gaps = [Coverage(what, _UNSEEN) for what in ("steps", "memory", "operators", "call_sites")]
    gaps.append(
        Coverage("device_time", "frames show where the host waits for a device, not what the device does")
    )
    gaps.append(
        Coverage("transfer", "copies to the device are not Python: they are in the line that calls them")
    )
    if not any(sample.phase in _TRAINS for sample in host.samples):
        gaps.append(
            Coverage(
                "training", "no forward, backward or optimizer was seen: is this the process that trains?"
            )
        )
    return gaps
