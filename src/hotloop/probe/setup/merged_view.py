"""What a guarded program sees: the file system, with what it wrote on top and without what it removed.

A path is resolved in this view, link by link, as the system would: links that lead out of the project are followed to
what they lead to, and links that the program itself made are seen.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from typing import Any

_MAX_LINKS = 40
"""As the kernel's."""
_DEVICES = "/dev/"
_SHARED_MEMORY = "/dev/shm/"


class MergedView:
    """Where each path of the program really is.

    Args:
        folders: what is protected, as real paths.
        scratch: what is written instead lies below it under the same path.
        free: folders that the program may write to.
    """

    def __init__(self, folders: Sequence[str], scratch: str, free: Sequence[str] = ()) -> None:
        self._folders = tuple(folder.rstrip(os.sep) + os.sep for folder in folders)
        self._free = tuple(folder.rstrip(os.sep) + os.sep for folder in (*free, os.path.realpath(scratch)))
        self._upper = os.path.join(os.path.realpath(scratch), "upper")
        self._gone = os.path.join(os.path.realpath(scratch), "gone")
        self.busy = threading.local()
        """Set while this guard looks at files itself: what it calls then is not redirected."""
        os.makedirs(self._upper, exist_ok=True)
        os.makedirs(self._gone, exist_ok=True)

    def whole(self, path: Any, *, dir_fd: int | None = None, follow: bool = True) -> str | None:
        """Return the whole path if it is protected; None: it is not.

        Args:
            path: a path, or a descriptor of something that is open.
            dir_fd: what a relative path is relative to.
            follow: resolve the last part too, if it is a link.
        """
        if isinstance(path, int):
            name = _opened(path)
        elif isinstance(path, (str, bytes, os.PathLike)):
            name = os.fsdecode(path)
            if not name or "\0" in name:
                return None  # the system's own error
            if not name.startswith(os.sep):
                name = os.path.join((_opened(dir_fd) if dir_fd is not None else None) or self.cwd(), name)
        else:
            return None
        if name is None:
            return None
        return self._resolved(self.below(name), follow=follow)

    def below(self, name: str) -> str:
        """Return the path that a place in scratch stands for; another path as it is."""
        return name[len(self._upper) :] or "/" if (name + os.sep).startswith(self._upper + os.sep) else name

    def cwd(self) -> str:
        """Return the current folder, as the program sees it."""
        return self.below(os.getcwd())

    def _resolved(self, name: str, *, follow: bool) -> str | None:
        todo = [part for part in reversed(name.split(os.sep)) if part not in {"", "."}]
        done, num_links = "", 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = os.path.dirname(done).rstrip(os.sep)
                continue
            done = f"{done}{os.sep}{part}"
            if not (todo or follow):
                break
            target = self._link(done)
            if target is None:
                continue
            num_links += 1
            if num_links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
            done = "" if target.startswith(os.sep) else os.path.dirname(done).rstrip(os.sep)
            todo += [one for one in reversed(target.split(os.sep)) if one not in {"", "."}]
        return done if self._is_protected(done + os.sep) else None

    def _link(self, name: str) -> str | None:
        for place in (self.above(name), name):
            try:
                return os.readlink(place)
            except OSError as error:
                if error.errno == errno.EINVAL:  # there, and no link
                    return None
        return None

    def _is_protected(self, name: str) -> bool:
        if not name.startswith(self._folders) or name.startswith(self._free):
            return False
        return not name.startswith(_DEVICES) or name.startswith(_SHARED_MEMORY)

    def above(self, whole: str) -> str:
        """Return where a protected path lies in scratch, once it has been written."""
        return self._upper + whole

    def _mark(self, whole: str) -> str:
        """Return the file that says a protected path was removed."""
        return os.path.join(self._gone, hashlib.sha256(os.fsencode(whole)).hexdigest())

    def seen(self, path: Any, *, dir_fd: int | None = None, follow: bool = True) -> Any:
        """Return where to read a path; the path itself where it is not protected.

        Raises:
            FileNotFoundError: the program has removed it.
        """
        whole = self.whole(path, dir_fd=dir_fd, follow=follow)
        return path if whole is None else self.place(whole)

    def place(self, whole: str) -> str:
        """Return where to read a protected path, resolved already.

        Raises:
            FileNotFoundError: the program has removed it.
        """
        if os.path.lexists(self.above(whole)):
            return self.above(whole)
        if any(os.path.lexists(self._mark(part)) for part in _parts(whole)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), whole)
        return whole

    def exists(self, whole: str) -> bool:
        """Whether the program sees something at a protected path."""
        try:
            return os.path.lexists(self.place(whole))
        except FileNotFoundError:
            return False

    def written(self, whole: str, *, keep: bool) -> str:
        """Return where to write a protected path; its folder is there, and its content where it is kept.

        Raises:
            FileNotFoundError: the program sees no such folder.
            PermissionError: it could not write there without us.
        """
        folder = os.path.dirname(whole)
        above = self.above(whole)
        if not os.path.isdir(self.place(folder)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), whole)
        there = os.path.lexists(above)
        if not there and self.exists(whole):
            mode = os.lstat(whole).st_mode
            if stat.S_ISREG(mode) and not os.access(whole, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), whole)
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                return whole  # a pipe or a socket: whoever reads it is its other end
        elif not there and not os.access(self.place(folder), os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), whole)
        os.makedirs(os.path.dirname(above), exist_ok=True)
        if keep and not there and self.exists(whole):
            copy(self.place(whole), above)
        if os.path.lexists(self._mark(whole)):
            os.unlink(self._mark(whole))
            if os.path.lexists(whole) and stat.S_ISDIR(os.lstat(whole).st_mode):
                self._remember_gone_below(whole)
        return above

    def _remember_gone_below(self, whole: str) -> None:
        """A folder that was removed and is made again is empty: what was in it stays removed."""
        for name in os.listdir(whole):
            self._set_mark(os.path.join(whole, name))

    def remove(self, whole: str) -> None:
        """Let the program see nothing there any more."""
        above = self.above(whole)
        if os.path.isdir(above) and not os.path.islink(above):
            shutil.rmtree(above)
        elif os.path.lexists(above):
            os.unlink(above)
        self._set_mark(whole)

    def _set_mark(self, whole: str) -> None:
        with open(self._mark(whole), "wb") as file:
            file.write(os.fsencode(whole))

    def names(self, whole: str) -> list[str]:
        """Return the names that the program sees in a protected folder."""
        names: set[str] = set()
        for place in (whole, self.above(whole)):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                names.update(os.listdir(place))
        return sorted(name for name in names if self.exists(os.path.join(whole, name)))

    def is_untouched(self, whole: str) -> bool:
        """Whether a protected folder is as it was: nothing written in it, nothing removed anywhere."""
        return not os.path.isdir(self.above(whole)) and not os.listdir(self._gone)


def copy(source: str, target: str) -> None:
    """Copy a file, a link or a whole folder."""
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _opened(descriptor: int | None) -> str | None:
    """Return the path of an open file or folder; None: it has none."""
    try:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return name if name.startswith(os.sep) and not name.endswith(" (deleted)") else None


def _parts(whole: str) -> list[str]:
    """A path and the folders above it: one removed takes what was in it with it."""
    parts = [whole]
    while os.path.dirname(parts[-1]) != parts[-1]:
        parts.append(os.path.dirname(parts[-1]))
    return parts
