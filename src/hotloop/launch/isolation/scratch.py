"""Folders for what a run writes: apart from the user's, nobody else's, and swept when their owner is gone."""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import functools
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hotloop.launch.isolation.shared_folder import replaceable_by_others
from hotloop.model.errors import ExitCode, HotloopError

MIN_FREE_BYTES = 64 << 20
"""A run's records and logs stay far below this; without it a trial's own checkpoint would fail half-way."""
FULL_BYTES = 1 << 20
"""Less than this is nothing: a file system keeps some blocks for itself."""
_LOCK = ".owner-"
_MEMORY = Path("/dev/shm")


def scratch_root() -> Path:
    """Return the folder of this user's scratch folders, outside `/tmp` where it can be.

    A folder of that name that somebody else made, or may write to, is never used: he could have a program of ours run
    what he puts there.

    Raises:
        HotloopError: it cannot be written, others may replace it, or there is no space.
    """
    asked_for = os.environ.get("HOTLOOP_SCRATCH")
    for base in (asked_for, "/var/tmp", tempfile.gettempdir()):
        if not base or not os.access(base, os.W_OK):
            continue
        real = Path(os.path.realpath(base))
        theirs = replaceable_by_others(real)
        if theirs is None:
            root = _private(real)
            break
        if base == asked_for:
            raise HotloopError(
                f"{base} cannot hold scratch folders: other users may replace what lies in {theirs}",
                "name a folder that is yours alone, or one with the sticky bit: export HOTLOOP_SCRATCH=/some/folder",
                ExitCode.MACHINE,
            )
    else:
        raise HotloopError(
            "no scratch folder can be written, so trials could not be kept apart from your files",
            "name one that can: export HOTLOOP_SCRATCH=/some/folder",
            ExitCode.MACHINE,
        )
    free = shutil.disk_usage(root).free
    if free < MIN_FREE_BYTES:
        raise HotloopError(
            f"only {free >> 20} MiB are free in {root}, too little for what a run writes",
            "free some space, or name another folder: export HOTLOOP_SCRATCH=/some/folder",
            ExitCode.MACHINE,
        )
    return root


def check_space(scratch: Path, log: str) -> None:
    """Demand that a run that failed had space to write.

    Args:
        scratch: of the run.
        log: the end of its output.

    Raises:
        HotloopError: the file system of scratch is full.
    """
    free = shutil.disk_usage(scratch).free
    if free < FULL_BYTES or (free < MIN_FREE_BYTES and os.strerror(errno.ENOSPC) in log):
        raise HotloopError(
            f"no space is left in {scratch.parent}, where a program's writes go while it is measured",
            "free some space, or name another folder (export HOTLOOP_SCRATCH=/some/folder); then go on with --resume",
            ExitCode.MACHINE,
        )


def _private(base: Path) -> Path:
    """Return a folder below `base` that is this user's alone."""
    root = base / f"hotloop-{os.getuid()}"
    try:
        root.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:  # a file or a dangling link
        return _other_private(base)
    except OSError as error:
        raise HotloopError(
            f"{root} cannot be made: {error.strerror}",
            "name another folder: export HOTLOOP_SCRATCH=/some/folder",
            ExitCode.MACHINE,
        ) from error
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return _other_private(base)
    if stat.S_IMODE(status.st_mode) != 0o700:
        root.chmod(0o700)
    return root


@functools.cache
def _other_private(base: Path) -> Path:
    """Somebody else has taken the name: one that cannot be guessed, for as long as this process lives."""
    return Path(tempfile.mkdtemp(prefix=f"hotloop-{os.getuid()}-", dir=base))


def new_scratch(label: str, *, root: Path | None = None) -> Path:
    """Return a new, empty folder; its name says whose it is, so that it can be swept after that process."""
    root = root or scratch_root()
    return Path(tempfile.mkdtemp(prefix=f"{label}-{os.getpid()}-{_token(root, os.getpid())}-", dir=root))


@functools.cache
def _token(root: Path, owner: int) -> str:
    """Lock a file of this process's own for as long as it lives, and return the word that names it.

    A lock and not a process id: ids are used again, and another container may share the folder.
    """
    token = secrets.token_hex(4)
    path = root / f"{_LOCK}{token}"
    descriptor = os.open(root / f"{_LOCK}{token}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (root / f"{_LOCK}{token}.new").rename(path)
    atexit.register(_forget, path, owner)
    return token  # the descriptor stays open on purpose


def _forget(lock: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends with the same list of what to do
        lock.unlink(missing_ok=True)


def belongs_to(folder: Path, owner: int) -> bool:
    """Whether a scratch folder was made by a process."""
    return f"-{owner}-" in folder.name


def sweep(root: Path) -> list[Path]:
    """Remove the scratch folders whose owners are gone, and return which."""
    folders = list(_folders(root))  # first: whoever made one of them had locked his file before
    gone = {lock.name.removeprefix(_LOCK): lock for lock in root.glob(f"{_LOCK}*") if _is_free(lock)}
    known = {lock.name.removeprefix(_LOCK) for lock in root.glob(f"{_LOCK}*")} - gone.keys()
    swept = []
    for folder in folders:
        token = _token_of(folder)
        if token is not None and token not in known:
            remove(folder)
            swept.append(folder)
    for lock in gone.values():
        lock.unlink(missing_ok=True)
    return swept


def _folders(root: Path) -> Iterator[Path]:
    return (path for path in root.iterdir() if path.is_dir() and not path.is_symlink())


def _token_of(folder: Path) -> str | None:
    """Return the owner's word in a name like `arm-1234-89abcdef-x7_q`; None: it is not of that form."""
    parts = folder.name.split("-")
    numbers = [index for index, part in enumerate(parts) if part.isdigit()]
    if not numbers or len(parts) <= numbers[0] + 2:
        return None
    token = parts[numbers[0] + 1]
    return token if len(token) == 8 else None


def _is_free(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return not lock.name.endswith(".new")
    finally:
        os.close(descriptor)


def memory_root() -> Path | None:
    """Return the folder of this user's scratch folders in memory; None: this system has no such file system."""
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK) or replaceable_by_others(_MEMORY) is not None:
        return None
    return _private(_MEMORY)


def sweep_memory() -> None:
    """Remove what programs that were killed have left in memory; in a namespace they had another user's number."""
    for root in _MEMORY.glob("hotloop-*"):
        with contextlib.suppress(OSError):
            status = root.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                sweep(root)


def remove(scratch: Path) -> None:
    """Remove a scratch folder; overlay work folders cannot be read until their mode is changed."""
    for folder, inside, _ in os.walk(scratch):
        for name in inside:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(scratch, ignore_errors=True)
