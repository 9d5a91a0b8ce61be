"""How fast a folder's disk reads, past the page cache.

A scratch file is written and flushed, then read with O_DIRECT, which asks the disk each time; where the file
system does not know O_DIRECT the pages are dropped before each repeat. A file system that lives in memory
(tmpfs) can do neither: its rates are reported as what they are, memory. What a hypervisor or a RAID
controller caches is not seen from here and stays in the numbers.
"""

import mmap
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hotloop.machine.card.repeat import measure_rate
from hotloop.machine.host.mounts import mount_of
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.machine import DiskRates, Rate

_FILE_BYTES = 256 << 20
_WRITE_BUDGET_S = 4.0
"""A slow disk gets a smaller file: a hard disk of 150 MB/s reads the whole one in 1.7 s."""
_BLOCK_BYTES = 1 << 20
"""Above the 128 KiB that Linux reads ahead by default, so that a block is at least one full request."""
_BUDGET_S = 1.5
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
_NUM_RANDOM_READS = 200
_DIRECT = "O_DIRECT"
_DROPPED = "pages dropped first"
_CACHED = "from the page cache"


def disk_rates(folder: Path, file_bytes: int = _FILE_BYTES, budget_s: float = _BUDGET_S) -> DiskRates:
    """Return the read rates of the disk under a folder; a scratch file is written there and removed.

    Raises:
        HotloopError: the folder cannot be written, or has not twice the space that the file needs.
    """
    mount = mount_of(folder)
    in_memory = mount.kind in _IN_MEMORY
    with _scratch_file(folder, file_bytes) as (descriptor, way):
        reader = _Reader(descriptor, "from memory" if in_memory else way)
        return DiskRates(
            folder=str(folder.resolve()),
            mount=mount.point,
            filesystem=mount.kind,
            cache_bypassed=not in_memory and way != _CACHED,
            sequential_read_bytes_per_s=reader.sequential(budget_s),
            random_4kib_reads_per_s=reader.random(4 << 10, budget_s, count_bytes=False),
            random_128kib_read_bytes_per_s=reader.random(128 << 10, budget_s, count_bytes=True),
        )


class _Reader:
    """Reads one open file into one page-aligned buffer, which O_DIRECT asks for."""

    def __init__(self, descriptor: int, way: str) -> None:
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._way = way
        self._random = random.Random(0)

    def sequential(self, budget_s: float) -> Rate:
        """Return bytes per second from the file's start to its end, in blocks of 1 MiB."""
        method = f"{self._size / 1e6:.0f} MB in order, 1 MiB blocks, one reader, {self._way}"
        offsets = range(0, self._size - _BLOCK_BYTES + 1, _BLOCK_BYTES)
        return self._measure(lambda: offsets, _BLOCK_BYTES, float(_BLOCK_BYTES), method, budget_s)

    def random(self, block_bytes: int, budget_s: float, count_bytes: bool) -> Rate:
        """Return bytes or reads per second at random places, one after the other."""
        num_blocks = self._size // block_bytes

        def offsets() -> list[int]:
            return [self._random.randrange(num_blocks) * block_bytes for _ in range(_NUM_RANDOM_READS)]

        method = f"{_NUM_RANDOM_READS} random reads of {block_bytes >> 10} KiB, one at a time, {self._way}"
        amount = float(block_bytes) if count_bytes else 1.0
        return self._measure(offsets, block_bytes, amount, method, budget_s)

    def _measure(
        self,
        offsets: Callable[[], range | list[int]],
        block_bytes: int,
        amount: float,
        method: str,
        budget_s: float,
    ) -> Rate:
        with mmap.mmap(-1, block_bytes) as buffer:

            def work() -> float:
                self._forget()
                wanted = offsets()
                for offset in wanted:
                    os.preadv(self._descriptor, [buffer], offset)
                return amount * len(wanted)

            return measure_rate(work, method, budget_s=budget_s)

    def _forget(self) -> None:
        """Drop the file's pages; with O_DIRECT there are none."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _scratch_file(folder: Path, num_bytes: int) -> Iterator[tuple[int, str]]:
    """A flushed file of random bytes, open for reading, and how it gets past the page cache.

    Its name goes before anything is written, so that not even a kill leaves it behind.
    """
    _check_space(folder, num_bytes)
    try:
        writer, name = tempfile.mkstemp(prefix=".hotloop-disk-", dir=folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    readers = [os.open(name, os.O_RDONLY)]
    try:
        with suppress(OSError):
            readers.append(os.open(name, os.O_RDONLY | getattr(os, _DIRECT, 0)))
        os.unlink(name)
        _fill(writer, num_bytes)
        yield _best(readers)
    finally:
        for descriptor in (writer, *readers):
            os.close(descriptor)


def _best(readers: list[int]) -> tuple[int, str]:
    """Some file systems open with O_DIRECT and then refuse to read: one block is tried."""
    if len(readers) > 1 and hasattr(os, _DIRECT):
        with suppress(OSError), mmap.mmap(-1, 4096) as block:
            os.preadv(readers[1], [block], 0)
            return readers[1], _DIRECT
    return readers[0], _DROPPED if hasattr(os, "posix_fadvise") else _CACHED


def _check_space(folder: Path, num_bytes: int) -> None:
    try:
        stat = os.statvfs(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    free = stat.f_bavail * stat.f_frsize
    if free < 2 * num_bytes:
        raise HotloopError(
            f"{folder} has {free / 1e6:.0f} MB free; its disk is measured with {num_bytes / 1e6:.0f} MB",
            "free some space, or name another folder: hotloop machine --folder PATH",
            ExitCode.MACHINE,
        )


def _unwritable(folder: Path, error: OSError) -> HotloopError:
    return HotloopError(
        f"{folder} cannot be written ({error.strerror}), so its disk cannot be measured",
        "name a folder you may write to: hotloop machine --folder PATH",
        ExitCode.MACHINE,
    )


def _fill(writer: int, num_bytes: int) -> None:
    """Random bytes, so that no file system compresses them; a slow disk gets fewer."""
    block, start = os.urandom(_BLOCK_BYTES), time.monotonic()
    for written in range(0, num_bytes, _BLOCK_BYTES):
        os.write(writer, block)
        if written % (16 * _BLOCK_BYTES) == 0:
            os.fsync(writer)
            if time.monotonic() - start > _WRITE_BUDGET_S:
                break
    os.fsync(writer)
