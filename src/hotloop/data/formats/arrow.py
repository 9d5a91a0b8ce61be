"""Shards as Arrow files: a column of bytes per field, read through a memory map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hotloop.data.formats.shard import demand
from hotloop.data.sample import Sample

_KEYS = "__key__"


class Arrow:
    """pyarrow's IPC file, one record batch per shard; a sample without a field has null there."""

    suffix = ".arrow"

    def write(self, path: Path, samples: Iterable[Sample]) -> None:
        """Write one shard."""
        demand("pyarrow", "Arrow")
        import pyarrow as pa

        held = list(samples)
        extensions = list(dict.fromkeys(extension for sample in held for extension in sample.fields))
        columns = [pa.array([sample.key for sample in held], pa.string())]
        columns += [
            pa.array([sample.fields.get(extension) for sample in held], pa.large_binary())
            for extension in extensions
        ]
        batch = pa.record_batch(columns, names=[_KEYS, *extensions])
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    def open(self, path: Path) -> ArrowShard:
        """Open one shard."""
        demand("pyarrow", "Arrow")
        return ArrowShard(path)


class ArrowShard:
    """An Arrow file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._map: Any = pa.memory_map(str(path))
        self._batch: Any = pa.ipc.open_file(self._map).get_batch(0)
        self._names: list[str] = self._batch.schema.names[1:]

    def __len__(self) -> int:
        """Return how many samples there are."""
        return int(self._batch.num_rows)

    def sample(self, index: int) -> Sample:
        """Return a sample by its position."""
        key, *contents = (column[index].as_py() for column in self._batch.columns)
        given = {
            name: content for name, content in zip(self._names, contents, strict=True) if content is not None
        }
        return Sample(key, given)

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples in order."""
        return map(self.sample, range(len(self)))

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
