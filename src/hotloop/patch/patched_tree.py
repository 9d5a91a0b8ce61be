"""The user's folder with a patch in it, beside the folder as it is: links to everything but the program's own files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from hotloop.launch.isolation.scratch import new_scratch, remove

LEVELS = 3
"""Folders above the program's in which it may look for something."""


@contextlib.contextmanager
def patched_tree(folder: Path, files: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a folder that holds these files, and links to all else of the user's; it goes away again.

    The program's files are copies, patched or not: Python looks for modules beside the script that a link leads to.
    What lies around the folder is linked too: programs keep their data in `../data`.

    Args:
        folder: the user's.
        files: path below it to content.
    """
    scratch = new_scratch("patched")
    try:
        tree = _surroundings(folder.resolve(), scratch / "tree")
        _mirror(folder, tree, {Path(path): content for path, content in files.items()})
        yield tree
    finally:
        remove(scratch)


def _surroundings(folder: Path, into: Path) -> Path:
    """Link what lies beside a folder, and beside the folders above it; return where the folder itself belongs."""
    around = [above for above in folder.parents if above != Path(above.anchor)][:LEVELS]
    into.mkdir()
    for above, inner in zip(reversed(around), [*reversed(around[:-1]), folder], strict=True):
        with contextlib.suppress(PermissionError):
            for entry in above.iterdir():
                if entry.name != inner.name:
                    (into / entry.name).symlink_to(entry)
        into = into / inner.name
        if inner != folder:
            into.mkdir()
    return into if around else into / folder.name


def _mirror(folder: Path, tree: Path, files: Mapping[Path, bytes]) -> None:
    tree.mkdir()
    for entry in folder.iterdir():
        name = Path(entry.name)
        below = {path.relative_to(name): raw for path, raw in files.items() if path.parts[0] == entry.name}
        if Path() in below:
            (tree / name).write_bytes(below[Path()])
        elif below:
            _mirror(entry, tree / name, below)
        else:
            (tree / name).symlink_to(entry.resolve())
