"""The folder that samples are read from, and what reading takes of their time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotloop.model.observation import Observation, Phase
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.bounds import require_share

if TYPE_CHECKING:
    from hotloop.model.deep import Loading, OpenedFolder

LEAST = 0.05
"""Of a sample's time in opening and reading: a nearer disk makes nothing else faster."""
READING = frozenset({"open", "read"})


def read_folder(observation: Observation) -> tuple[Loading, OpenedFolder]:
    """Return where a sample's time goes, and the folder that it is read from.

    Raises:
        DoesNotApply: no loader feeds training, nobody waits for it, or no file is opened for a sample.
    """
    training_loaders(observation)
    require_share(observation, Phase.DATA, "waiting for data")
    seen = observation.deep.loading if observation.deep else None
    if seen is None:
        raise DoesNotApply("what is opened for a sample was not looked at")
    if seen.folder is None:
        raise DoesNotApply("no file is opened for a sample")
    return seen, seen.folder


def reading_share(seen: Loading) -> float:
    """Return the share of a sample's time in opening and reading files."""
    return sum(part.share for part in seen.parts if part.kind in READING)


def file_s(seen: Loading, folder: OpenedFolder) -> float:
    """Return how long opening and reading a file takes, seconds."""
    spent = sum(part.time_per_sample_s for part in seen.parts if part.kind in READING)
    return spent / max(folder.files_per_sample, 1e-9)
