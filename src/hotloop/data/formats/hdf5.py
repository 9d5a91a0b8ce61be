"""Shards as HDF5 files: of each field all bytes in one data set, and where each sample's end in another.

A row of variable length per sample is the usual layout; h5py took 200 us to read each, this takes one read per shard.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hotloop.data.formats.shard import demand
from hotloop.data.sample import Sample

_KEYS, _FIELDS = "__key__", "__fields__"


class Hdf5:
    """h5py; no times are kept, so that the bytes depend on the samples alone."""

    suffix = ".h5"

    def write(self, path: Path, samples: Iterable[Sample]) -> None:
        """Write one shard."""
        demand("h5py", "HDF5")
        import h5py
        import numpy as np

        held = list(samples)
        names = dict.fromkeys(name for sample in held for name in sample.fields)
        with h5py.File(path, "w") as file:
            file.create_dataset(_KEYS, data=[sample.key for sample in held], dtype=h5py.string_dtype())
            given = [json.dumps(list(sample.fields)) for sample in held]
            file.create_dataset(_FIELDS, data=given, dtype=h5py.string_dtype())
            for name in names:
                contents = [sample.fields.get(name, b"") for sample in held]
                file[f"{name}/bytes"] = np.frombuffer(b"".join(contents), np.uint8)
                file[f"{name}/ends"] = np.cumsum([len(content) for content in contents])

    def open(self, path: Path) -> Hdf5Shard:
        """Open one shard."""
        demand("h5py", "HDF5")
        return Hdf5Shard(path)


class Hdf5Shard:
    """An HDF5 file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self._file: Any = h5py.File(path, "r")
        self._keys = [key.decode() for key in self._file[_KEYS][:]]
        self._fields: list[list[str]] = [json.loads(names) for names in self._file[_FIELDS][:]]
        names = dict.fromkeys(name for given in self._fields for name in given)
        self._bytes = {name: self._file[f"{name}/bytes"] for name in names}
        self._ends = {name: [0, *self._file[f"{name}/ends"][:].tolist()] for name in names}

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._keys)

    def sample(self, index: int) -> Sample:
        """Return a sample by its position."""
        return self._taken(self._bytes, index)

    def _taken(self, columns: dict[str, Any], index: int) -> Sample:
        fields = {}
        for name in self._fields[index]:
            first, end = self._ends[name][index : index + 2]
            fields[name] = columns[name][first:end].tobytes()
        return Sample(self._keys[index], fields)

    def __iter__(self) -> Iterator[Sample]:
        """Read each field whole, and yield all samples in order."""
        columns = {name: column[:] for name, column in self._bytes.items()}
        for index in range(len(self)):
            yield self._taken(columns, index)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
