"""The second-best write guard: inside Python, where the system does not permit a namespace with an overlay.

Writes go to scratch; reads see what was written there. It catches what Python code opens, makes, links, renames and
removes, `torch.save` and `sqlite3` included. It cannot redirect files written by C++ or Rust code, or by programs that
are not Python; where the kernel has Landlock, those are denied.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.probe.setup.guarded_changes import (
    changer,
    descriptor_changer,
    hard_linker,
    linker,
    maker,
    remover,
    renamer,
)
from hotloop.probe.setup.guarded_listings import lister, mover, reader, scanner
from hotloop.probe.setup.guarded_opens import descriptor_opener, guard_sqlite, guarded, opener, saver
from hotloop.probe.setup.merged_view import MergedView


def install(folders: Sequence[str], scratch: str, free: Sequence[str] = ()) -> MergedView:
    """Guard this process; called before any of the program's code."""
    view = MergedView(folders, scratch, free)
    sys.dont_write_bytecode = True  # the import system writes by a way of its own
    builtins.open = io.open = guarded(view, io.open, opener(view, io.open))
    wraps: dict[Callable[[MergedView, Any], Any], tuple[str, ...]] = {
        descriptor_opener: ("open",),
        reader: ("stat", "lstat", "access", "readlink", "statvfs", "getxattr", "listxattr"),
        mover: ("chdir",),
        changer: ("chmod", "utime", "truncate", "chown", "lchown", "setxattr", "removexattr"),
        descriptor_changer: ("fchmod", "fchown"),
        remover: ("remove", "unlink", "rmdir"),
        renamer: ("rename", "replace"),
        maker: ("mkdir", "mkfifo", "mknod"),
        linker: ("symlink",),
        hard_linker: ("link",),
        lister: ("listdir",),
        scanner: ("scandir",),
    }
    for wrap, names in wraps.items():
        for name in names:
            _patch(view, name, wrap)
    original = os.getcwd
    os.getcwd = lambda: view.below(original())
    shutil._use_fd_functions = False  # type: ignore[attr-defined]  # rmtree by paths, which can be looked up
    guard_sqlite(view)
    return view


def install_torch(view: MergedView) -> None:
    """Guard what torch writes from C++."""
    import torch

    for owner, name, at in ((torch, "save", 1), (torch.jit, "save", 1)):
        setattr(owner, name, saver(view, getattr(owner, name), at))


def _patch(view: MergedView, name: str, wrap: Callable[[MergedView, Any], Any]) -> None:
    original = getattr(os, name, None)
    if original is None:
        return
    changed = guarded(view, original, wrap(view, original))
    setattr(os, name, changed)
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if original in known:  # libraries ask whether a function is among them
            known.add(changed)
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
    if accessor is not None and hasattr(accessor, name):  # Python 3.10 keeps the functions themselves
        setattr(accessor, name, staticmethod(changed))
