"""What every source of samples can do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from hotloop.data.sample import Sample
from hotloop.data.source.dataset_object import DatasetObject
from hotloop.data.source.folder import Folder
from hotloop.model.errors import HotloopError


class Source(Protocol):
    """Samples in a fixed order."""

    fingerprint: str
    """Changes when what would be read changes."""
    classes: tuple[str, ...] | None
    """Names of the classes; None: samples have none."""
    structure: Any
    """How a sample is put together again from its fields; None: it is its fields."""

    def __len__(self) -> int:
        """Return how many samples there are."""

    def sample(self, index: int) -> Sample:
        """Return one sample.

        Raises:
            HotloopError: it cannot be read, or cannot be held in shards.
        """

    def forget(self, index: int) -> None:
        """Drop what the page cache holds of a sample, so that the next read asks the disk."""


def open_source(name: str) -> Source:
    """Return the source that a name means: a folder, or `module:attr`.

    Raises:
        HotloopError: it means neither.
    """
    if Path(name).is_dir():
        return Folder(Path(name))
    module, colon, attribute = name.partition(":")
    if colon and module.replace(".", "").isidentifier():
        return DatasetObject(module, attribute)
    raise HotloopError(
        f"{name} is neither a folder nor a data set",
        "name a folder of files, or a Dataset object as module:attr, such as train:dataset",
    )
