"""What the storage under a data set gives: its files read cold and warm, in order and at random, by some processes.

Files are read as a loader reads them: opened, read, closed. Long files are read a part at a time.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.data.source.folder import Folder, forget_file
from hotloop.machine.host.mounts import mount_of
from hotloop.machine.host.topology import cores
from hotloop.model.data import BenchReport, ReadRate
from hotloop.model.errors import HotloopError
from hotloop.model.machine import Rate

BLOCK_BYTES = 1 << 20
"""Longer files are read in such parts: above the 128 KiB that Linux reads ahead."""
BUDGET_S = 1.5
"""For each way of reading."""
NUM_REPEATS = 5
ORDERS = ("sequential", "random")
NUM_PILOT = 500
MIN_READS, MAX_READS = 8, 100_000
TIMEOUT_S = 300.0
"""A repeat that takes longer hangs: at 8 reads each took over half a minute."""
MAX_WORKERS = 8
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
_TERABYTE, _PETABYTE = 1e12, 1e15
Progress = Callable[[str], None]


class Part(NamedTuple):
    """A part of a file, as long as is read at a time."""

    path: str
    offset: int
    size: int


def bench(source: Path, progress: Progress = lambda _: None, budget_s: float = BUDGET_S) -> BenchReport:
    """Measure how fast the files of a folder, or one file, are read.

    Raises:
        HotloopError: there are none.
    """
    files = {source: source.stat().st_size} if source.is_file() else Folder(source).files()
    mount, parts = mount_of(source), _parts(files)
    if not parts:
        raise HotloopError(f"{source} holds nothing but empty files", "name a folder with data")
    in_memory = mount.kind in _IN_MEMORY
    rates: list[ReadRate] = []
    for cache in ("warm",) if in_memory else ("cold", "warm"):
        per_repeat = _per_repeat(parts, cache, budget_s)
        for num_workers in _worker_counts():
            progress(f"{cache} reads by {num_workers}")
            rates += _measured(parts, cache, num_workers, per_repeat)
    return BenchReport(
        folder=str(source.resolve()),
        filesystem=mount.kind,
        mount=mount.point,
        server=mount.device if mount.is_network else None,
        in_memory=in_memory,
        num_files=len(files),
        total_bytes=sum(files.values()),
        median_file_bytes=int(statistics.median(files.values())),
        block_bytes=BLOCK_BYTES,
        rates=tuple(rates),
    )


def _parts(files: dict[Path, int]) -> list[Part]:
    """Return the files in parts, empty ones left out."""
    return [
        Part(str(path), offset, min(BLOCK_BYTES, size - offset))
        for path, size in files.items()
        for offset in range(0, size, BLOCK_BYTES)
    ]


def _worker_counts() -> list[int]:
    """Return 1, 2, 4, ... as far as there are cores, and one step further: readers wait more than they compute."""
    most = min(MAX_WORKERS, 2 * cores().num_usable)
    return [num for num in (1, 2, 4, 8) if num <= most]


def _measured(parts: Sequence[Part], cache: str, num_workers: int, per_repeat: int) -> list[ReadRate]:
    """Return how fast some processes read in order and at random: in turns, so that what else happens hits both."""
    shown = {"sequential": parts, "random": random.Random(0).sample(parts, len(parts))}
    turns = [
        order for number in range(NUM_REPEATS) for order in (ORDERS if number % 2 == 0 else ORDERS[::-1])
    ]
    done = dict.fromkeys(ORDERS, 0)
    repeats = []
    for order in turns:
        repeats.append([shown[order][(done[order] + at) % len(parts)] for at in range(per_repeat)])
        done[order] += per_repeat
    seconds = _seconds(repeats, forget if cache == "cold" else read, num_workers)
    rates: dict[str, list[float]] = {order: [] for order in ORDERS}
    for order, repeat, spent in zip(turns, repeats, seconds, strict=True):
        rates[order].append(sum(part.size for part in repeat) / spent)
    mean_bytes = statistics.fmean(part.size for part in parts)
    return [_rate(order, cache, num_workers, per_repeat, rates[order], mean_bytes) for order in ORDERS]


def _rate(
    order: str, cache: str, num_workers: int, per_repeat: int, rates: Sequence[float], mean_bytes: float
) -> ReadRate:
    median = statistics.median(rates)
    how = "pages dropped before each repeat" if cache == "cold" else "read just before each repeat"
    return ReadRate(
        order=order,
        cache=cache,
        num_workers=num_workers,
        bytes_per_s=Rate(
            median=median,
            low=min(rates),
            high=max(rates),
            num=len(rates),
            method=f"{per_repeat} reads a repeat by {num_workers} processes, {how}",
        ),
        repeats_bytes_per_s=tuple(rates),
        reads_per_s=median / mean_bytes,
        terabyte_s=_TERABYTE / median,
        petabyte_s=_PETABYTE / median,
    )


def _seconds(
    repeats: Sequence[Sequence[Part]], prepare: Callable[[Sequence[Part]], object], num: int
) -> list[float]:
    """Return how long each repeat took processes that have their parts already and begin at once."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(num + 1, timeout=TIMEOUT_S)
    starts: list[Any] = [context.Array("d", num) for _ in repeats]
    ends: list[Any] = [context.Array("d", num) for _ in repeats]
    workers = [
        context.Process(
            target=_worker,
            args=([repeat[at::num] for repeat in repeats], prepare, barrier, at, starts, ends),
            daemon=True,
        )
        for at in range(num)
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in range(2 * len(repeats)):
            barrier.wait()
    except threading.BrokenBarrierError as error:
        raise HotloopError(
            "a reader ended early: a file cannot be read, or went away", "see that all files can be read"
        ) from error
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    return [max(max(end) - min(start), 1e-9) for start, end in zip(starts, ends, strict=True)]


def _worker(
    shares: Sequence[Sequence[Part]],
    prepare: Callable[[Sequence[Part]], object],
    barrier: Barrier,
    at: int,
    starts: Sequence[Any],
    ends: Sequence[Any],
) -> None:
    """Read a share of each repeat; the clock is the same in all processes."""
    try:
        for share, start, end in zip(shares, starts, ends, strict=True):
            prepare(share)
            barrier.wait()
            start[at] = time.monotonic()
            read(share)
            end[at] = time.monotonic()
            barrier.wait()
    except OSError:
        barrier.abort()


def read(parts: Sequence[Part]) -> None:
    """Open, read and close each part's file."""
    for part in parts:
        descriptor = os.open(part.path, os.O_RDONLY)
        try:
            os.pread(descriptor, part.size, part.offset)
        finally:
            os.close(descriptor)


def forget(parts: Sequence[Part]) -> None:
    """Drop the pages of the parts' files."""
    for path in {part.path: None for part in parts}:
        forget_file(Path(path))


def _per_repeat(parts: Sequence[Part], cache: str, budget_s: float) -> int:
    """Return how many reads fill a repeat, by some of them; what was read cold is not read again."""
    some = random.Random(1).sample(parts, min(NUM_PILOT, len(parts)))
    (forget if cache == "cold" else read)(some)
    start, num = time.perf_counter(), 0
    for part in some:
        read([part])
        num += 1
        if time.perf_counter() - start > budget_s / NUM_REPEATS:
            break
    each_s = (time.perf_counter() - start) / num
    most = len(parts) if cache == "cold" else MAX_READS
    return max(MIN_READS, min(most, int(budget_s / NUM_REPEATS / each_s)))
