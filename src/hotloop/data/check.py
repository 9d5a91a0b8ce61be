"""Check a pack: every checksum, and every sample beside the original's, both read in order and timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hotloop.data.formats.registry import FORMATS
from hotloop.data.manifest import finished, packed_plan, sha256_of
from hotloop.data.pack import shard_name, shard_range
from hotloop.data.sample import Sample
from hotloop.data.source.folder import forget_file
from hotloop.data.source.source import Source, open_source
from hotloop.model.data import CheckReport, PackPlan
from hotloop.model.errors import HotloopError
from hotloop.model.machine import Rate

MAX_NAMED = 100
MIN_BLOCKS = 5
"""Small packs are read several times, and compared once."""
_METHOD = "blocks in turns, one reader, in order, pages dropped before each block, names of files known"
Progress = Callable[[str], None]


def check(
    folder: Path,
    progress: Progress = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
    *,
    source_name: str | None = None,
) -> CheckReport:
    """Read a whole pack and its original again.

    Args:
        folder: of the pack.
        progress: told of what is read.
        clock: seconds; tests bring their own.
        source_name: the original, where it has moved since.

    Raises:
        HotloopError: nothing is packed there.
    """
    plan = packed_plan(folder)
    entries = {entry.file: entry for entry in finished(folder)}
    names = [shard_name(plan, number) for number in range(plan.num_shards)]
    damaged: list[str] = []
    for at, name in enumerate(names, 1):
        progress(f"checksums: shard {at} of {len(names)}")
        if name in entries and sha256_of(folder / name) != entries[name].sha256:
            damaged.append(name)
    missing = tuple(name for name in names if name not in entries)
    whole = [number for number, name in enumerate(names) if name in entries and name not in damaged]
    source, original = _original(plan, source_name)
    blocks = _Blocks(plan, folder, clock)
    if source is not None:
        for turn, number in enumerate(_again(whole)):
            progress(f"beside the original: shard {number + 1} of {len(names)}")
            blocks.read(source, number, packed_first=turn % 2 == 1, compared=turn < len(whole))
    return CheckReport(
        folder=str(folder),
        format=plan.format,
        num_samples=plan.num_samples,
        num_shards=plan.num_shards,
        missing_shards=missing,
        damaged_shards=tuple(damaged),
        num_compared=blocks.num_compared,
        different_keys=tuple(blocks.different[:MAX_NAMED]),
        num_different=len(blocks.different),
        original=original,
        original_samples_per_s=_rate(blocks.original),
        packed_samples_per_s=_rate(blocks.packed),
        speedup=_rate([after / before for before, after in zip(blocks.original, blocks.packed, strict=True)]),
    )


def _original(plan: PackPlan, moved: str | None) -> tuple[Source | None, str | None]:
    """Return the original, or why there is nothing to compare with.

    Raises:
        HotloopError: it was said to be somewhere else, and there is nothing like it.
    """
    if moved is not None:
        source = open_source(moved)
        if len(source) != plan.num_samples:
            raise HotloopError(
                f"{moved} has {len(source)} samples, and {plan.num_samples} were packed",
                "name what was packed",
            )
        return source, None
    try:
        source = open_source(plan.source)
    except HotloopError as error:
        return None, error.message
    if source.fingerprint != plan.fingerprint:
        return None, f"{plan.source} has changed since it was packed"
    return source, None


def _again(numbers: list[int]) -> list[int]:
    """Return the shards, so often that there are some blocks to tell the spread by."""
    return numbers * -(-MIN_BLOCKS // len(numbers)) if numbers else []


class _Blocks:
    """Reads shards and their originals in turns; what is read is compared, and timed without the comparison."""

    def __init__(self, plan: PackPlan, folder: Path, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._folder = folder
        self._clock = clock
        self.num_compared = 0
        self.different: list[str] = []
        self.original: list[float] = []
        self.packed: list[float] = []

    def read(self, source: Source, number: int, *, packed_first: bool, compared: bool) -> None:
        """Read one shard and its original."""
        samples, path = shard_range(self._plan, number), self._folder / shard_name(self._plan, number)
        for index in samples:
            source.forget(index)
        forget_file(path)
        read: dict[bool, list[Sample]] = {}
        for is_packed in (packed_first, not packed_first):
            if is_packed:
                read[True] = self._timed(lambda: _all_of(self._plan, path), self.packed)
            else:
                read[False] = self._timed(lambda: list(map(source.sample, samples)), self.original)
        if compared:
            self._compare(read[False], read[True])

    def _compare(self, original: list[Sample], packed: list[Sample]) -> None:
        self.num_compared += len(original)
        self.different += [one.key for one, other in zip(original, packed, strict=False) if one != other]
        self.different += [sample.key for sample in original[len(packed) :] + packed[len(original) :]]

    def _timed(self, read: Callable[[], list[Sample]], rates: list[float]) -> list[Sample]:
        start = self._clock()
        samples = read()
        rates.append(len(samples) / max(self._clock() - start, 1e-9))
        return samples


def _all_of(plan: PackPlan, path: Path) -> list[Sample]:
    with closing(FORMATS[plan.format].open(path)) as shard:
        return list(shard)


def _rate(rates: list[float]) -> Rate | None:
    if not rates:
        return None
    return Rate(
        median=statistics.median(rates), low=min(rates), high=max(rates), num=len(rates), method=_METHOD
    )
