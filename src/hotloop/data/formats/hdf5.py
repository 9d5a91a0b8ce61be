"""Shards as HDF5 files: a data set of bytes per field, a row per sample."""

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
        extensions = list(dict.fromkeys(extension for sample in held for extension in sample.fields))
        with h5py.File(path, "w") as file:
            file.create_dataset(_KEYS, data=[sample.key for sample in held], dtype=h5py.string_dtype())
            named = [json.dumps(list(sample.fields)) for sample in held]
            file.create_dataset(_FIELDS, data=named, dtype=h5py.string_dtype())
            for extension in extensions:
                rows = file.create_dataset(extension, (len(held),), dtype=h5py.vlen_dtype(np.uint8))
                for at, sample in enumerate(held):
                    rows[at] = np.frombuffer(sample.fields.get(extension, b""), np.uint8)

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

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._keys)

    def sample(self, index: int) -> Sample:
        """Return a sample by its position."""
        fields = {name: self._file[name][index].tobytes() for name in self._fields[index]}
        return Sample(self._keys[index], fields)

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples in order."""
        return map(self.sample, range(len(self)))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
