"""The user's repository at another revision, in a folder of its own that goes away again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.model.errors import HotloopError
from hotloop.model.git import run_git

_NOT_LINKED = {".git", ".hotloop"}


@contextlib.contextmanager
def tree_at(revision: str, here: Path) -> Iterator[Path]:
    """Check a revision out in a Git worktree and yield the folder in it that answers to this one.

    What Git does not track (data, environments) is linked to where it is, so that commands find it.

    Raises:
        HotloopError: there is no repository, or no such revision.
    """
    try:
        top = Path(_git(here, "rev-parse", "--show-toplevel").strip())
    except HotloopError as error:
        raise HotloopError(
            f"there is no Git repository to take {revision!r} from: {error.message}",
            "compare two commands instead: hotloop compare 'python old.py' 'python new.py'",
        ) from error
    try:
        commit = _git(top, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").strip()
    except HotloopError as error:
        raise HotloopError(f"this repository has no revision {revision!r}", error.hint) from error
    scratch = new_scratch("baseline")
    tree = scratch / "tree"
    try:
        _git(top, "worktree", "add", "--detach", "--quiet", str(tree), commit)
        _link_untracked(top, tree)
        yield tree / here.resolve().relative_to(top.resolve())
    finally:
        with contextlib.suppress(HotloopError):
            _git(top, "worktree", "remove", "--force", str(tree))
        remove(scratch)


def _link_untracked(top: Path, tree: Path) -> None:
    listed = _git(top, "ls-files", "--others", "--directory", "-z")
    for name in filter(None, listed.split("\0")):
        path = Path(name.rstrip("/"))
        target = tree / path
        if path.parts[0] in _NOT_LINKED or target.exists() or not target.parent.is_dir():
            continue
        target.symlink_to(top / path)


def _git(folder: Path, *words: str) -> str:
    try:
        done = run_git(folder, words)
    except OSError as error:
        raise HotloopError(
            f"Git cannot be run: {error.strerror}", "install Git, or compare two commands"
        ) from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["Git failed"]
        raise HotloopError(
            f"git {words[0]} failed: {why[0]}", "name a revision that this repository has: --baseline main"
        )
    return done.stdout.decode(errors="replace")
