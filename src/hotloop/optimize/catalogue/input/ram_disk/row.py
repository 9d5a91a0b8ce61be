"""ram_disk: the files of a small data set are copied to memory when the program starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.ram_disk.staged_folder import StagedFolder
from hotloop.optimize.dataset.kept_loaders import MAX_SHARE, check_share
from hotloop.optimize.dataset.read_folder import LEAST, read_folder, reading_share
from hotloop.optimize.dataset.redirected_opens import RedirectedOpens
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import data_folder, only
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class RamDisk(Optimization):
    """Copy a small data set's files to a file system in memory, and open them there.

    What it does: the folder that samples were seen to be read from is copied to `/dev/shm` when the program starts.
    What Python opens for reading below it is opened in the copy (`open`, `os.open`, and so `Path.open`, PIL and
    `numpy.load`); workers share it. Files that change, and new ones, are opened where they are. The copy goes with
    the program.

    Why it is faster: a file on a network mount or a slow disk costs a trip for every open and read. The system keeps
    files that were read in memory by itself, but gives them up for others, and asks a network mount whether they
    have changed.

    When it does not help: files that the system has in memory anyway, on a local disk; folders that do not fit into
    the stated share of the free memory (`max_share`, 0.25 unless given), or into half of what is free in
    `/dev/shm`, through which loader workers send their batches. Libraries that open files in C (HDF5, LMDB, OpenCV)
    open the originals. Copying takes time before the first step.

    Effect on numerics: none; the same bytes are read. A file's `name` is that of its copy.

    Example: `cp -r data /dev/shm/data; python train.py --data /dev/shm/data`

    References: Linux, tmpfs(5).
    """

    name: ClassVar[str] = "ram_disk"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {"dataset_in_memory", "cached_preprocessing", "remote_loading"}
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the folder that samples are read from, where reading takes some of the wait."""
        seen, folder = read_folder(observation)
        if folder.path.startswith("/dev/shm"):
            raise DoesNotApply(f"{folder.path} is in memory already")
        if folder.bytes is None:
            raise DoesNotApply(f"{folder.path} holds more files than could be counted in half a second")
        part = reading_share(seen)
        if part < LEAST:
            raise DoesNotApply(
                f"opening and reading take {part:.1%} of a sample's time: no disk makes that faster"
            )
        whole = share(observation, Phase.DATA)
        # Files that the system has in memory are as fast: half of the reading is a guess that orders trials.
        prior = expected(whole * part if whole is not None else None, 2.0)
        return [
            self.candidate(
                params={"folder": folder.path},
                max_gain=1.0 / (1.0 - whole) if whole is not None and whole < 1.0 else None,
                prior=prior,
            )
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the folder's name and the share of the memory."""
        only(params, "folder", "max_share")
        data_folder(params, "folder")
        check_share(params)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what copies the files and opens the copies."""
        folder, max_share = params["folder"], params.get("max_share", MAX_SHARE)
        return RedirectedOpens(folder, lambda: StagedFolder(folder, max_share))

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Say what to type: where a program's data lies is told on its command line."""
        from hotloop.source.outcome import Refused

        folder = params["folder"]
        return Refused(
            "the data path is an argument, not in the source",
            f"cp -r {folder} /dev/shm/  # and tell the program /dev/shm/{folder.rstrip('/').rpartition('/')[2]}",
        )
