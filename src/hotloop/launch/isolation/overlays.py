"""A file system of its own for a run: every read sees what is there, every write goes to scratch.

One overlay for each mount. Devices, /proc and /sys stay as they are, scratch and what the user names stay writable, and
what cannot be the lower layer of an overlay becomes read-only. In a user namespace a folder with mounts in it cannot be
overlaid (its mounts are locked): it is built anew, with an overlay for each folder in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from hotloop.launch.isolation import namespace
from hotloop.launch.isolation.mounts import Mount, is_below, visible_mounts

COVERS = "covers"
"""A file beside the upper directory of an overlay: the folder that it covers."""
PLACEHOLDERS = "placeholders"
"""A file beside it: names in the upper directory that we made, as a JSON list."""
SHARED_MEMORY = "/dev/shm"


_SETTINGS = ("/sys", "/sysrq-trigger", "/irq", "/bus", "/acpi", "/scsi")
"""Below /proc; the rest of it belongs to single processes."""
_SETTINGS_OF_PROC = tuple(f"/proc{path}" for path in _SETTINGS)


class WholeTree:
    """Builds the tree and enters it.

    Args:
        scratch: of the run; takes what is written.
        scratch_root: stays as it is, for every run of this user.
        writable: folders and files that the user excepts.
        own: folders that need an overlay of their own, parents first.
        copies: for some of them, a layer that lies above what they hold: copies that can be copied up.
        within_user: mounts are locked.
        own_processes: /proc shows the processes of the run alone.
    """

    def __init__(
        self,
        scratch: Path,
        scratch_root: str,
        writable: Sequence[str],
        own: Sequence[str],
        copies: Mapping[str, str],
        *,
        within_user: bool,
        own_processes: bool,
    ) -> None:
        self._own_processes = own_processes
        self._scratch = scratch
        self._scratch_root = scratch_root
        self._writable = writable
        self._own = own
        self._copies = copies
        self._within_user = within_user
        self._mounts = visible_mounts()
        self._root = str(scratch / "root")
        self._num = 0
        self.read_only: list[tuple[str, str]] = []
        """What could not be covered, and why; a run cannot write there."""

    def enter(self) -> None:
        """Make this process's file system the covered one.

        Raises:
            OSError: it is not permitted.
        """
        os.mkdir(self._root)
        self._attach(next(mount for mount in self._mounts if mount.point == "/"))
        for folder in self._own:
            self._cover(folder)
        namespace.bind(self._scratch_root, self._root + self._scratch_root)
        for path in self._writable:
            namespace.bind(path, self._root + path)
        namespace.change_root(self._root)

    def _attach(self, mount: Mount) -> None:
        target = self._root + mount.point if mount.point != "/" else self._root
        if mount.point == SHARED_MEMORY:
            self._shared_memory()
            return
        if mount.point == "/proc" and self._own_processes:
            namespace.new_proc(target)
            self._protect_settings(target, _SETTINGS)
            return
        if mount.machinery or mount.read_only:
            namespace.bind(mount.point, target)
            if mount.point in ("/proc", "/sys"):
                below = [one.point for one in self._mounts if is_below(one.point, mount.point)]
                self._protect_settings(self._root, below if mount.point == "/sys" else _SETTINGS_OF_PROC)
            if mount.point == "/dev" and not mount.read_only:
                namespace.make_read_only(target)  # devices work all the same; files cannot be left there
            if mount.point == "/dev" and os.path.isdir(SHARED_MEMORY) and not os.path.ismount(SHARED_MEMORY):
                self._shared_memory()
            if mount.point == "/dev" or not mount.machinery:
                self._attach_below(mount.point)
        else:
            self._cover(mount.point)

    def _protect_settings(self, root: str, paths: Sequence[str]) -> None:
        """Make kernel settings read-only that root could change for the whole machine."""
        for path in paths:
            target = root + path
            if os.path.exists(target):
                with contextlib.suppress(OSError):  # in a user namespace they are nobody's to change
                    if not os.path.ismount(target):
                        namespace.bind(target, target)
                    namespace.make_read_only(target)

    def _attach_below(self, point: str) -> None:
        for mount in self._next_below(point):
            self._attach(mount)

    def _next_below(self, folder: str) -> list[Mount]:
        """Return the mounts below a folder that lie in no other of them."""
        below = [one for one in self._mounts if one.point != folder and is_below(one.point, folder)]
        return [
            one
            for one in below
            if not any(is_below(one.point, other.point) for other in below if other is not one)
        ]

    def _cover(self, folder: str) -> None:
        """Cover a folder and every mount below it."""
        try:
            self._overlay(folder)
        except OSError as error:
            if not self._next_below(folder):
                self._forbid(folder, error)
                return
            self._rebuild(folder)
            return
        self._attach_below(folder)

    def _overlay(self, folder: str) -> None:
        upper = self._upper(folder, self._scratch / "writes")
        copy = self._copies.get(folder)
        namespace.overlay(
            [copy, folder] if copy else [folder],
            str(upper),
            str(upper.parent / "work"),
            self._root + folder,
            within_user=self._within_user,
        )

    def _upper(self, folder: str, base: Path) -> Path:
        """Return a new upper directory, with the mode and the owner of what it covers."""
        place = base / str(self._num)
        self._num += 1
        upper = place / "upper"
        upper.mkdir(parents=True)
        (place / "work").mkdir()
        (place / COVERS).write_bytes(os.fsencode(folder))
        status = os.stat(folder)
        if os.getuid() == 0 and not self._within_user:
            os.chown(upper, status.st_uid, status.st_gid)
        mode = stat.S_IMODE(status.st_mode)
        upper.chmod(mode if status.st_uid == os.getuid() or os.getuid() == 0 else _as_seen(folder, mode))
        return upper

    def _forbid(self, folder: str, error: OSError) -> None:
        target = self._root + folder
        namespace.bind(folder, target)
        namespace.make_read_only(target)
        if os.access(folder, os.W_OK):
            self.read_only.append((folder, os.strerror(error.errno) if error.errno else str(error)))

    def _rebuild(self, folder: str, base: Path | None = None) -> None:
        """Make a folder anew: its folders covered one by one, its files readable, what is new in it in scratch."""
        upper = self._upper(folder, base or self._scratch / "writes")
        namespace.bind(str(upper), self._root + folder)
        mode = stat.S_IMODE(upper.stat().st_mode)
        upper.chmod(0o700)
        points = {mount.point: mount for mount in self._mounts}
        names = []
        for entry in _entries(folder):
            names.append(entry.name)
            target = upper / entry.name
            if entry.is_symlink():
                target.symlink_to(os.readlink(entry.path))
            elif entry.is_dir():
                target.mkdir()
                mount = points.get(entry.path)
                if mount is not None:
                    self._attach(mount)
                else:
                    self._cover(entry.path)
            else:
                target.touch()
                namespace.bind(entry.path, self._root + entry.path)
                if entry.is_file():
                    namespace.make_read_only(self._root + entry.path)
        upper.chmod(mode)
        (upper.parent / PLACEHOLDERS).write_text(json.dumps(names))

    def _shared_memory(self) -> None:
        """Cover shared memory by memory: on a disk the loader's batches would travel through it."""
        memory = self._scratch / "shared-memory"
        memory.mkdir()
        size = os.statvfs(SHARED_MEMORY)
        namespace.new_tmpfs(str(memory), size.f_frsize * size.f_blocks)
        upper = self._upper(SHARED_MEMORY, memory)
        if _finds_shared_memory_by_kind():
            self._rebuild(SHARED_MEMORY, memory)
            return
        work = str(upper.parent / "work")
        namespace.overlay(
            [SHARED_MEMORY], str(upper), work, self._root + SHARED_MEMORY, within_user=self._within_user
        )


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What a folder holds; nothing where this user may not look."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        return []


def _as_seen(folder: str, mode: int) -> int:
    """The mode of a folder that is another's, where all users look like its owner: what this user may do."""
    return mode if os.access(folder, os.W_OK) else mode & ~0o222


def _finds_shared_memory_by_kind() -> bool:
    """Whether the C library takes shared memory only from a tmpfs: glibc did before 2.34."""
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        return name == "glibc" and tuple(map(int, version.split(".")[:2])) < (2, 34)
    except (ValueError, OSError):
        return False
