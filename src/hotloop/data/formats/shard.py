"""What every format can do."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from hotloop.data.sample import Sample
from hotloop.model.errors import ExitCode, HotloopError


class Shard(Protocol):
    """One shard, open for reading."""

    def __len__(self) -> int:
        """Return how many samples it holds."""

    def sample(self, index: int) -> Sample:
        """Return a sample by its position in the shard."""

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples in order."""

    def close(self) -> None:
        """Let go of the file."""


class Format(Protocol):
    """Writes and opens shards; the same samples give the same bytes."""

    @property
    def suffix(self) -> str:
        """Return what the names of its files end with."""

    def write(self, path: Path, samples: Iterable[Sample]) -> None:
        """Write one shard."""

    def open(self, path: Path) -> Shard:
        """Open one shard."""


def demand(module: str, what: str) -> None:
    """Demand a library.

    Raises:
        HotloopError: it is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise HotloopError(
            f"{what} shards need {module}, which is not installed",
            'pip install "hotloop[shards]", or pack as WebDataset tar, which needs nothing',
            ExitCode.MACHINE,
        )
