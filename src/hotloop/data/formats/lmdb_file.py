"""Shards as LMDB files: position to a MessagePack record of key and fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hotloop.data.formats.shard import demand
from hotloop.data.sample import Sample

_MAP_BYTES = 1 << 40
"""Address space, not disk: the file is as long as what is in it."""


class Lmdb:
    """The `lmdb` package; one transaction per shard, so that the bytes depend on the samples alone."""

    suffix = ".lmdb"

    def write(self, path: Path, samples: Iterable[Sample]) -> None:
        """Write one shard."""
        demand("lmdb", "LMDB")
        import lmdb

        path.unlink(missing_ok=True)  # it would be added to
        with (
            lmdb.open(str(path), map_size=_MAP_BYTES, subdir=False, lock=False) as environment,
            environment.begin(write=True) as transaction,
        ):
            for at, sample in enumerate(samples):
                transaction.put(_at(at), msgspec.msgpack.encode(sample), append=True)

    def open(self, path: Path) -> LmdbShard:
        """Open one shard."""
        demand("lmdb", "LMDB")
        return LmdbShard(path)


class LmdbShard:
    """An LMDB file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        import lmdb

        self._environment: Any = lmdb.open(
            str(path), map_size=_MAP_BYTES, subdir=False, lock=False, readonly=True, readahead=True
        )

    def __len__(self) -> int:
        """Return how many samples there are."""
        return int(self._environment.stat()["entries"])

    def sample(self, index: int) -> Sample:
        """Return a sample by its position."""
        with self._environment.begin(buffers=True) as transaction:
            return msgspec.msgpack.decode(transaction.get(_at(index)), type=Sample)

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples in order."""
        with self._environment.begin(buffers=True) as transaction:
            for record in transaction.cursor().iternext(keys=False, values=True):
                yield msgspec.msgpack.decode(record, type=Sample)

    def close(self) -> None:
        """Let go of the file."""
        self._environment.close()


def _at(index: int) -> bytes:
    return f"{index:09d}".encode()
