"""Changes of the write guard: what the program changes, makes, links, renames and removes, it does in scratch."""

from __future__ import annotations

import errno
import os
import shutil
from typing import Any

from hotloop.probe.setup.merged_view import MergedView, copy
from hotloop.probe.setup.system_error import system_error


def changer(view: MergedView, original: Any) -> Any:
    """Return a function that changes a file of scratch: `chmod`, `truncate` and the like."""

    def change(path: Any, *args: Any, **kwargs: Any) -> Any:
        follow = kwargs.get("follow_symlinks", True) and original.__name__ != "lchown"
        whole = view.whole(path, dir_fd=kwargs.get("dir_fd"), follow=follow)
        if whole is None:
            return original(path, *args, **kwargs)
        if isinstance(path, int) and original.__name__ == "truncate":
            return original(path, *args, **kwargs)  # open for writing: it is in scratch already
        kwargs.pop("dir_fd", None)
        os.lstat(view.place(whole))  # the system's own error where there is nothing
        return original(view.written(whole, keep=True), *args, **kwargs)

    return change


def descriptor_changer(view: MergedView, original: Any) -> Any:
    """A file that is open for reading is the user's own: its mode and owner change in scratch."""
    by_path: Any = {"fchmod": os.chmod, "fchown": os.chown}[original.__name__]

    def change(descriptor: int, *args: Any) -> Any:
        whole = view.whole(descriptor)
        if whole is None or os.path.lexists(view.above(whole)):
            return original(descriptor, *args)
        return by_path(view.written(whole, keep=True), *args)

    return change


def remover(view: MergedView, original: Any) -> Any:
    """Return a function that removes in scratch only."""

    def remove(path: Any, *, dir_fd: int | None = None) -> None:
        whole = view.whole(path, dir_fd=dir_fd, follow=False)
        if whole is None:
            original(path, dir_fd=dir_fd)
            return
        place = view.place(whole)
        is_folder = os.path.isdir(place) and not os.path.islink(place)
        os.lstat(place)  # the system's own error where there is nothing
        if original.__name__ == "rmdir":
            if not is_folder:
                raise system_error(errno.ENOTDIR, whole)
            if view.names(whole):
                raise system_error(errno.ENOTEMPTY, whole)
        elif is_folder:
            raise system_error(errno.EISDIR, whole)
        if not os.access(view.place(os.path.dirname(whole)), os.W_OK):
            raise system_error(errno.EACCES, whole)
        view.remove(whole)

    return remove


def renamer(view: MergedView, original: Any) -> Any:
    """Return a function that renames in scratch only."""

    def rename(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        source = view.whole(src, dir_fd=src_dir_fd, follow=False)
        target = view.whole(dst, dir_fd=dst_dir_fd, follow=False)
        if source is None and target is None:
            original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            return
        seen = view.place(source) if source is not None else src
        os.lstat(seen)
        if source == target:
            return
        place = view.written(target, keep=False) if target is not None else dst
        if target is not None and os.path.isdir(seen) and not os.path.islink(seen):
            if view.exists(target) and view.names(target):
                raise system_error(errno.ENOTEMPTY, target)
            view.remove(target)
            place = view.written(target, keep=False)
            _copy_seen(view, source, seen, place)
        else:
            if os.path.lexists(place):
                os.unlink(place)
            copy(seen, place)
        if source is not None:
            view.remove(source)
        elif os.path.isdir(src):
            shutil.rmtree(src)
        else:
            os.unlink(src)

    return rename


def _copy_seen(view: MergedView, source: str | None, seen: str, place: str) -> None:
    """Copy a folder as the program sees it: what was there, and what it wrote on top."""
    if source is None:
        copy(seen, place)
        return
    os.mkdir(place)
    for name in view.names(source):
        inner = os.path.join(source, name)
        found = view.place(inner)
        if os.path.isdir(found) and not os.path.islink(found):
            _copy_seen(view, inner, found, os.path.join(place, name))
        else:
            copy(found, os.path.join(place, name))


def maker(view: MergedView, original: Any) -> Any:
    """Return a function that makes a folder, FIFO or node in scratch."""

    def make(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> None:
        whole = view.whole(path, dir_fd=dir_fd, follow=False)
        if whole is None:
            original(path, *args, dir_fd=dir_fd, **kwargs)
            return
        if view.exists(whole):
            raise system_error(errno.EEXIST, whole)
        original(view.written(whole, keep=False), *args, **kwargs)

    return make


def linker(view: MergedView, original: Any) -> Any:
    """Return a `symlink` that makes its link in scratch."""

    def symlink(src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        whole = view.whole(dst, dir_fd=dir_fd, follow=False)
        if whole is None:
            original(src, dst, target_is_directory, dir_fd=dir_fd)
            return
        if view.exists(whole):
            raise system_error(errno.EEXIST, whole)
        original(src, view.written(whole, keep=False))

    return symlink


def hard_linker(view: MergedView, original: Any) -> Any:
    """A hard link to a file of the user's would be that file: its copy is linked instead."""

    def link(src: Any, dst: Any, **kwargs: Any) -> None:
        source = view.whole(src, dir_fd=kwargs.get("src_dir_fd"), follow=False)
        target = view.whole(dst, dir_fd=kwargs.get("dst_dir_fd"), follow=False)
        if source is None and target is None:
            original(src, dst, **kwargs)
            return
        if target is not None and view.exists(target):
            raise system_error(errno.EEXIST, target)
        if source is not None:
            os.lstat(view.place(source))
        place = view.written(source, keep=True) if source is not None else src
        original(place, view.written(target, keep=False) if target is not None else dst)

    return link
