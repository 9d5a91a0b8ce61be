"""Pack a source into shards: a shard at a time, each of which survives whatever happens after it.

A shard is written under another name, flushed to disk, hashed as it reads back, renamed, and then entered in the list
of finished shards. A call that finds finished shards goes on behind them.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hotloop.data.formats.registry import FORMATS
from hotloop.data.manifest import add, finished, keep, read_plan, sha256_of, sync, write_plan
from hotloop.data.sample import Sample
from hotloop.data.source.source import Source, open_source
from hotloop.model.data import PackPlan, PackReport, ShardEntry
from hotloop.model.errors import ExitCode, HotloopError

SHARD_BYTES = 256 << 20
"""Large enough that opening it is nothing beside reading it at 3 GB/s (80 ms)."""
MAX_SHARD_SAMPLES = 5_000
"""A kill loses at most the shard under way: 5,000 small files took 1 s to pack."""
_NUM_WEIGHED = 64
Progress = Callable[[int, int], None]


def pack(
    source_name: str,
    folder: Path,
    format_name: str = "tar",
    samples_per_shard: int | None = None,
    progress: Progress = lambda _done, _all: None,
) -> PackReport:
    """Pack a source, or go on with a pack that was ended early; shards that are damaged are packed anew.

    Args:
        source_name: a folder, or `module:attr`.
        folder: for the shards; made where it is not there.
        format_name: one of `FORMATS`.
        samples_per_shard: None: about `SHARD_BYTES` a shard.
        progress: told how many samples of all are packed.

    Raises:
        HotloopError: the source cannot be packed, or the folder holds something else.
    """
    started = time.monotonic()
    source = open_source(source_name)
    name = str(Path(source_name).resolve()) if Path(source_name).is_dir() else source_name
    _make(folder, Path(source_name))
    with _alone(folder):
        plan = _plan(source, name, folder, format_name, samples_per_shard)
        kept = tuple(one for one in finished(folder) if sha256_of(folder / one.file) == one.sha256)
        keep(folder, kept)
        entries = _pack_missing(source, plan, folder, kept, progress)
    return PackReport(
        plan=plan,
        folder=str(folder),
        num_kept=len(kept),
        num_written=len(entries) - len(kept),
        total_bytes=sum(entry.num_bytes for entry in entries),
        wall_s=time.monotonic() - started,
    )


def _pack_missing(
    source: Source, plan: PackPlan, folder: Path, kept: Sequence[ShardEntry], progress: Progress
) -> list[ShardEntry]:
    entries, files = list(kept), {entry.file for entry in kept}
    for number in range(plan.num_shards):
        if shard_name(plan, number) not in files:
            done = sum(entry.num_samples for entry in entries)
            told = partial(_tell, progress, done, plan.num_samples)
            entries.append(_write(source, plan, folder, number, told))
    return entries


def _tell(progress: Progress, before: int, total: int, num: int) -> None:
    progress(before + num, total)


def shard_name(plan: PackPlan, number: int) -> str:
    """Return the name of a shard's file; WebDataset finds them as `shard-{000000..000099}.tar`."""
    return f"shard-{number:06d}{FORMATS[plan.format].suffix}"


def shard_range(plan: PackPlan, number: int) -> range:
    """Return the samples of a shard."""
    first = number * plan.samples_per_shard
    return range(first, min(first + plan.samples_per_shard, plan.num_samples))


def _make(folder: Path, source: Path) -> None:
    if source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
        raise HotloopError(
            f"{folder} lies inside of {source}, so that shards would be packed into shards",
            "name a folder beside it",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HotloopError(
            f"{folder} cannot be made: {error.strerror}", "name another folder", ExitCode.MACHINE
        ) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two packs at once into one folder would mix; the lock goes with the process."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HotloopError(f"another pack writes to {folder}", "wait for its end") from error
        yield


def _plan(
    source: Source, name: str, folder: Path, format_name: str, samples_per_shard: int | None
) -> PackPlan:
    """Return the plan of an earlier call, which has to be of the same source, or a new one."""
    before = read_plan(folder)
    if before is None:
        return _new_plan(source, name, folder, format_name, samples_per_shard)
    if before.fingerprint != source.fingerprint or before.source != name:
        what = "has changed since" if before.source == name else f"is not what was packed ({before.source})"
        raise HotloopError(
            f"{folder} holds {len(finished(folder))} of {before.num_shards} shards of a pack, and {name} {what}",
            "name another folder, or remove this one",
        )
    if before.format != format_name or samples_per_shard not in {None, before.samples_per_shard}:
        raise HotloopError(
            f"{folder} holds a pack of {before.samples_per_shard} samples a shard as {before.format}",
            "go on with the same settings, or name another folder",
        )
    return before


def _new_plan(
    source: Source, name: str, folder: Path, format_name: str, samples_per_shard: int | None
) -> PackPlan:
    if any(not entry.name.startswith(".") for entry in folder.iterdir()):
        raise HotloopError(f"{folder} holds files that are no pack", "name an empty folder, or a new one")
    plan = PackPlan(
        source=name,
        fingerprint=source.fingerprint,
        format=format_name,
        num_samples=len(source),
        samples_per_shard=samples_per_shard or _samples_per_shard(source),
        classes=source.classes,
        structure=source.structure,
    )
    write_plan(folder, plan)
    return plan


def _samples_per_shard(source: Source) -> int:
    """Return how many samples make about `SHARD_BYTES`, by some of them."""
    some = range(0, len(source), max(1, len(source) // _NUM_WEIGHED))
    sizes = [sum(map(len, source.sample(index).fields.values())) for index in some]
    mean = max(1, sum(sizes) // len(sizes))
    return max(1, min(MAX_SHARD_SAMPLES, SHARD_BYTES // mean))


def _write(
    source: Source, plan: PackPlan, folder: Path, number: int, progress: Callable[[int], None]
) -> ShardEntry:
    path = folder / shard_name(plan, number)
    scratch = path.with_name(f"{path.name}.partial")
    samples = shard_range(plan, number)
    try:
        FORMATS[plan.format].write(scratch, _told(source, samples, progress))
        sync(scratch)
    except OSError as error:
        raise HotloopError(
            f"{path} cannot be written: {error.strerror or error}",
            "free some space, and call again: finished shards are kept",
            ExitCode.MACHINE,
        ) from error
    entry = ShardEntry(
        file=path.name,
        num_samples=len(samples),
        num_bytes=scratch.stat().st_size,
        sha256=sha256_of(scratch),
    )
    os.replace(scratch, path)
    sync(folder)
    add(folder, entry)
    return entry


def _told(source: Source, samples: range, progress: Callable[[int], None]) -> Iterator[Sample]:
    for number, index in enumerate(samples, 1):
        yield source.sample(index)
        progress(number)
