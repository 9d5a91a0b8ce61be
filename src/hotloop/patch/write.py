"""Write a patch into the user's files."""

from __future__ import annotations

from pathlib import Path

from hotloop.model.errors import HotloopError
from hotloop.patch.rewrite_plan import Patch
from hotloop.source.files import back_up, is_committed, write_atomically


def write_patch(patch: Patch, folder: Path, *, force: bool) -> list[str]:
    """Write the changed files; return what was done, one line each.

    A file that git holds as it is needs no backup. One with changes of its own is refused: its edits and ours could not
    be told apart afterwards.

    Raises:
        HotloopError: a file has uncommitted changes, and nothing was written.
    """
    committed = {path: is_committed(folder / path) for path in patch.changed}
    dirty = [path for path, clean in committed.items() if clean is False]
    if dirty and not force:
        raise HotloopError(
            f"{', '.join(dirty)} has changes that are not committed, and an edit would mix with them",
            "commit them first, or write all the same with --force, which keeps a backup",
        )
    said = []
    for path in patch.changed:
        file = folder / path
        kept = "" if committed[path] else f" (before: {back_up(file).name})"
        write_atomically(file, patch.after[path])
        said.append(f"{path} is written{kept}")
    return said
