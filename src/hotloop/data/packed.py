"""The ready data set of a pack: every sample by its index, from whichever format, in any process."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from hotloop.data.formats.registry import FORMATS
from hotloop.data.formats.shard import Shard
from hotloop.data.manifest import finished, packed_plan
from hotloop.data.sample import Sample
from hotloop.data.source.structure import put_together
from hotloop.model.errors import HotloopError


class PackedDataset:
    """What `hotloop data pack` wrote, as a map-style data set for `torch.utils.data.DataLoader`.

    Of a Dataset object a sample is what the object returned. Of a folder of classes it is image and class, as
    torchvision's `ImageFolder` returns them. Of any other folder it is a dict of the files' bytes by extension, with
    `__key__`.

    Args:
        folder: of the shards.
        transform: applied to the image of a folder of classes, to the whole sample otherwise.

    Raises:
        HotloopError: nothing is packed there, or not all of it.
    """

    def __init__(self, folder: str | Path, transform: Callable[[Any], Any] | None = None) -> None:
        self.folder = Path(folder)
        self.plan = packed_plan(self.folder)
        self.transform = transform
        entries = sorted(finished(self.folder), key=lambda entry: entry.file)
        if len(entries) < self.plan.num_shards:
            raise HotloopError(
                f"{folder} holds {len(entries)} of {self.plan.num_shards} shards",
                f"let the pack be finished: hotloop data pack {self.plan.source} {folder}",
            )
        self._files = [entry.file for entry in entries]
        self._ends = list(accumulate(entry.num_samples for entry in entries))
        self._open: dict[int, Shard] = {}
        self._process = os.getpid()

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Return the names of the classes; None: samples have none."""
        return self.plan.classes

    def __len__(self) -> int:
        """Return how many samples there are."""
        return self.plan.num_samples

    def __getitem__(self, index: int) -> Any:
        """Return a sample."""
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        number = bisect_right(self._ends, index)
        first = self._ends[number - 1] if number else 0
        return self._shown(self._shard(number).sample(index - first))

    def __iter__(self) -> Iterator[Any]:
        """Yield all samples in order, each shard from its start to its end."""
        for number in range(len(self._files)):
            yield from map(self._shown, self._shard(number))

    def _shard(self, number: int) -> Shard:
        """Return a shard, opened by this process: an LMDB file must not go through a fork."""
        if self._process != os.getpid():
            self._open, self._process = {}, os.getpid()
        if number not in self._open:
            self._open[number] = FORMATS[self.plan.format].open(self.folder / self._files[number])
        return self._open[number]

    def _shown(self, sample: Sample) -> Any:
        if self.plan.structure is not None:
            return self._transformed(put_together(sample.fields, self.plan.structure))
        if self.plan.classes is not None:
            return self._image_and_class(sample.fields)
        return self._transformed({"__key__": sample.key, **sample.fields})

    def _image_and_class(self, fields: dict[str, bytes]) -> tuple[Any, int]:
        from PIL import Image

        content = next(content for extension, content in fields.items() if extension != "cls")
        with Image.open(io.BytesIO(content)) as image:
            return self._transformed(image.convert("RGB")), int(fields["cls"])

    def _transformed(self, value: Any) -> Any:
        return value if self.transform is None else self.transform(value)

    def close(self) -> None:
        """Let go of the open shards."""
        for shard in self._open.values():
            shard.close()
        self._open.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Open files do not travel to workers."""
        return {**self.__dict__, "_open": {}}
