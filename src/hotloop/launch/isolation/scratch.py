"""Folders for what a run writes: apart from the user's, and swept when they are done with."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hotloop.model.errors import ExitCode, HotloopError

MIN_FREE_BYTES = 64 << 20
"""A run's records and logs stay far below this; without it a trial's own checkpoint would fail half-way."""


def scratch_root() -> Path:
    """Return the folder of this user's scratch folders, outside `/tmp` where it can be.

    Programs write to `/tmp`, so that may have to be covered, and what covers a folder cannot lie in it.

    Raises:
        HotloopError: it cannot be written, or there is no space.
    """
    for base in (os.environ.get("HOTLOOP_SCRATCH"), "/var/tmp", tempfile.gettempdir()):
        if base and os.access(base, os.W_OK):
            root = Path(base) / f"hotloop-{os.getuid()}"
            break
    else:
        raise HotloopError(
            "no scratch folder can be written, so trials could not be kept apart from your files",
            "name one that can: export HOTLOOP_SCRATCH=/some/folder",
            ExitCode.MACHINE,
        )
    root.mkdir(mode=0o700, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free < MIN_FREE_BYTES:
        raise HotloopError(
            f"only {free >> 20} MiB are free in {root}, too little for what a run writes",
            "free some space, or name another folder: export HOTLOOP_SCRATCH=/some/folder",
            ExitCode.MACHINE,
        )
    return root


def new_scratch(label: str) -> Path:
    """Return a new, empty folder; its name says whose it is, so that it can be swept after that process."""
    return Path(tempfile.mkdtemp(prefix=f"{label}-{os.getpid()}-", dir=scratch_root()))


def belongs_to(folder: Path, owner: int) -> bool:
    """Whether a scratch folder was made by a process."""
    return f"-{owner}-" in folder.name


def remove(scratch: Path) -> None:
    """Remove a scratch folder; overlay work folders cannot be read until their mode is changed."""
    for folder, inside, _ in os.walk(scratch):
        for name in inside:
            with contextlib.suppress(OSError):
                os.chmod(os.path.join(folder, name), 0o700)
    shutil.rmtree(scratch, ignore_errors=True)
