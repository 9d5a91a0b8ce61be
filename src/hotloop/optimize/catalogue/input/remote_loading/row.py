"""remote_loading: files that come over a network are copied to a local disk while the program trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.launch.isolation.scratch import scratch_root
from hotloop.machine.host.mounts import mount_of
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.remote_loading.fetched_folder import FetchedFolder
from hotloop.optimize.dataset.kept_loaders import MAX_SHARE, check_share
from hotloop.optimize.dataset.read_folder import LEAST, file_s, read_folder, reading_share
from hotloop.optimize.dataset.redirected_opens import RedirectedOpens
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import data_folder, integer, only
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

THREADS = 8
"""That wait for the server at once; each waits far more than it computes."""
SLOW_FILE_S = 1e-3
"""To open and read a file: a local solid-state disk answers in a tenth of that."""
FASTER = 5.0
"""A trip over a network against a local open; what the order of trials goes by."""


class RemoteLoading(Optimization):
    """Copy the files of a remote data set to a local disk while the program trains, and open them there.

    What it does: the folder that samples were seen to be read from lies on a network mount, or on another file system
    that takes a millisecond and more for a file. Each file is copied whole, in reads of 4 MiB, when Python first opens
    it (`open`, `os.open`, and so `Path.open`, PIL and `numpy.load`); threads (`num_threads`, 8 unless given) copy the
    others ahead meanwhile. From then on its copy is opened, by workers too. A file that has changed is copied again;
    what is written goes to the original. The copy goes with the program.

    Why it is faster: each open and each read of a remote file is a trip to the server, one after the other. Eight
    threads make eight trips at a time, a whole file takes fewer of them, and the second epoch takes none but for the
    time stamp.

    When it does not help: a single epoch that loading alone fills; a local disk; a server that is busy with its bytes,
    not with trips. Files above 256 MiB, and those that libraries open in C (HDF5, LMDB, OpenCV), are read where they
    are. The copy takes no more than a share of what the local disk has free (`max_share`, 0.25 unless given).

    Effect on numerics: none; the same bytes are read. A file's `name` is that of its copy.

    Example: `rsync -a server:/data/train/ /local/train/; python train.py --data /local/train`

    References: nfs(5), rsize.
    """

    name: ClassVar[str] = "remote_loading"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    conflicts: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory", "cached_preprocessing", "ram_disk"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the folder that samples are read from, where it is remote and reading takes some of the wait."""
        seen, folder = read_folder(observation)
        part = reading_share(seen)
        if part < LEAST:
            raise DoesNotApply(
                f"opening and reading take {part:.1%} of a sample's time: no disk makes that faster"
            )
        _require_remote(Path(folder.path), file_s(seen, folder))
        whole = share(observation, Phase.DATA)
        return [
            self.candidate(
                params={"folder": folder.path},
                max_gain=1.0 / (1.0 - whole) if whole is not None and whole < 1.0 else None,
                prior=expected(whole * part if whole is not None else None, FASTER),
            )
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the folder's name, the share of the disk and the number of threads."""
        only(params, "folder", "max_share", "num_threads")
        data_folder(params, "folder")
        check_share(params)
        integer(params, "num_threads", 1, 64)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what copies the files and opens the copies."""
        folder, max_share = params["folder"], params.get("max_share", MAX_SHARE)
        num_threads = params.get("num_threads", THREADS)
        return RedirectedOpens(folder, partial(FetchedFolder, folder, max_share, num_threads))

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Say what to type: where a program's data lies is told on its command line."""
        from hotloop.source.outcome import Refused

        folder = params["folder"].rstrip("/")
        return Refused(
            "the data path is an argument, not in the source",
            f"rsync -a {folder}/ /local/{folder.rpartition('/')[2]}/  # a local disk; and tell the program that folder",
        )


def _require_remote(folder: Path, seconds: float) -> None:
    """Demand that a copy would be nearer.

    Raises:
        DoesNotApply: with the reason.
    """
    mount = mount_of(folder)
    try:
        local = mount_of(scratch_root())
    except HotloopError as error:
        raise DoesNotApply(f"there is no place for a local copy: {error}") from error
    if local.is_network or local.point == mount.point:
        raise DoesNotApply(
            f"{folder} and the scratch folder are on one file system ({mount.point}, {mount.kind})"
        )
    if not mount.is_network and seconds < SLOW_FILE_S:
        raise DoesNotApply(f"{folder} is on a local file system, and a file takes {seconds * 1e3:.2g} ms")
