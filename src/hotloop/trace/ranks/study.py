"""Analyze many traces: in parallel where memory allows, then compared as ranks."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from hotloop.trace.analysis import SCHEMA, TraceAnalysis, analyze_trace
from hotloop.trace.facts.health import failure
from hotloop.trace.ranks.ranks import Collective, Ranks, compare_ranks, find_collectives
from hotloop.trace.read.nsight import is_nsight, read_nsight
from hotloop.trace.read.reader import read_traces
from hotloop.trace.read.source import find_files
from hotloop.trace.read.trace import Trace

_WORTH_A_PROCESS = 512 << 10
"""Bytes on disk from which a file is worth the 0.3 s that a new process takes to start: gzip makes about 15 MB of
them, which take that long to read."""
_MEMORY_PER_BYTE = 24
"""Resident bytes per byte on disk: 0.8 per byte of JSON (measured), times 30 that gzip takes off."""


class TraceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What several traces say, each alone and together as ranks."""

    traces: tuple[TraceAnalysis, ...]
    ranks: Ranks | None = None
    """None: one trace, or traces of no common ranks."""
    schema: int = SCHEMA


def analyze(
    *paths: str | Path,
    jobs: int | None = None,
    limit: int | None = 50,
    window: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> TraceReport:
    """Read and analyze every trace in files and folders.

    Args:
        paths: trace files, archives of them, folders.
        jobs: processes at most; None: as many as cores and free memory allow.
        limit: rows kept of kernels, operators and modules; None for all.
        window: the annotation whose first run bounds the critical path; None for the whole trace.
        progress: told each file's name as it is finished, if it is a trace.
    """
    files = find_files([Path(path) for path in paths])
    done: list[tuple[TraceAnalysis, list[Collective]]] = []
    for path, part in _run(files, jobs or _affordable(files), limit, window):
        done.extend(part)
        if progress is not None and not all(failure(analysis.health) for analysis, _ in part):
            progress(path.name)
    done.sort(key=lambda one: (one[0].rank is None, one[0].rank or 0, one[0].file))
    return TraceReport(traces=tuple(analysis for analysis, _ in done), ranks=_compare(done))


def _run(
    files: Sequence[Path], jobs: int, limit: int | None, window: str | None
) -> Iterator[tuple[Path, list[tuple[TraceAnalysis, list[Collective]]]]]:
    large = sum(path.stat().st_size > _WORTH_A_PROCESS for path in files)
    if jobs < 2 or large < 2:
        for path in files:
            yield path, _one_file(path, limit, window)
        return
    here = Path.cwd()
    os.chdir("/")  # a new Python looks for its modules where it is started
    try:
        pool = ProcessPoolExecutor(min(jobs, len(files)), mp_context=get_context("spawn"))
        futures = [(path, pool.submit(_one_file_in, here, path, limit, window)) for path in files]
    finally:
        os.chdir(here)
    with pool:
        for path, future in futures:
            yield path, future.result()


def _one_file_in(
    folder: Path, path: Path, limit: int | None, window: str | None
) -> list[tuple[TraceAnalysis, list[Collective]]]:
    os.chdir(folder)
    return _one_file(path, limit, window)


def _one_file(
    path: Path, limit: int | None, window: str | None
) -> list[tuple[TraceAnalysis, list[Collective]]]:
    return [(analyze_trace(trace, limit, window), find_collectives(trace)) for trace in traces_in(path)]


def traces_in(path: Path) -> Iterator[Trace]:
    """The traces in one file, whatever profiler wrote it."""
    if is_nsight(path):
        yield from read_nsight(path)
    else:
        yield from read_traces(path)


def _affordable(files: Sequence[Path]) -> int:
    largest = max((path.stat().st_size for path in files), default=1)
    by_memory = int(_free_bytes() * 0.5 / (_MEMORY_PER_BYTE * largest + (64 << 20)))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, by_memory))


def _free_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not Linux: assume what the smallest CI machines have
        return 4 << 30


def _compare(done: list[tuple[TraceAnalysis, list[Collective]]]) -> Ranks | None:
    with_rank = [(analysis, collectives) for analysis, collectives in done if analysis.rank is not None]
    ranks = [analysis.rank for analysis, _ in with_rank if analysis.rank is not None]
    if len(set(ranks)) != len(ranks):
        return None  # several windows of one rank: their n-th collectives are not the same ones
    return compare_ranks(
        ranks,
        [analysis.file for analysis, _ in with_rank],
        [collectives for _, collectives in with_rank],
        [analysis.device.compute_us if analysis.device else 0.0 for analysis, _ in with_rank],
    )
