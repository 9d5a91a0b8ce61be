"""Keep what a whole run wrote: its checkpoints and logs move from scratch to a folder of the user's."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from hotloop.launch.isolation.overlays import COVERS, PLACEHOLDERS

SKIPPED = ("__pycache__", ".hotloop")
"""Folders that are nobody's result."""


def keep_writes(scratch: Path, target: Path, cwd: Path) -> int:
    """Move what a run wrote under `target`, and return how many files that were.

    Files of the current folder keep their place relative to it; others go below `outside/` with their whole path.
    What the program deleted is listed in `deleted.txt` beside `target`.

    Args:
        scratch: the run's scratch folder.
        target: made when there is something to keep.
        cwd: the folder that the program ran in.
    """
    deleted: list[str] = []
    num = 0
    for upper, folder in _uppers(scratch):
        ours = _placeholders(upper)
        for path in _below(upper):
            if path.relative_to(upper).parts[0] in ours:
                continue
            place = folder / path.relative_to(upper)
            if _is_whiteout(path):
                deleted.append(str(place))
                continue
            _move(path, target / _relative(place, cwd))
            num += 1
    if deleted:
        target.parent.mkdir(parents=True, exist_ok=True)
        (target.parent / "deleted.txt").write_text("\n".join(sorted(deleted)) + "\n")
    return num


def _uppers(scratch: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each folder that took writes, and the folder whose place it took."""
    for covers in sorted((scratch / "writes").glob(f"**/{COVERS}")) if (scratch / "writes").is_dir() else ():
        yield covers.parent / "upper", Path(os.fsdecode(covers.read_bytes()))


def _placeholders(upper: Path) -> set[str]:
    """Names that stand in a folder that was built anew; what the program wrote there is none of them."""
    listed = upper.parent / PLACEHOLDERS
    return set(json.loads(listed.read_text())) if listed.exists() else set()


def _below(upper: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(upper):
        names[:] = [name for name in names if name not in SKIPPED]
        for name in files:
            yield Path(folder) / name
        for name in names:
            if (Path(folder) / name).is_symlink():
                yield Path(folder) / name


def _is_whiteout(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _relative(place: Path, cwd: Path) -> Path:
    if place.is_relative_to(cwd):
        return place.relative_to(cwd)
    return Path("outside") / place.relative_to(place.anchor)


def _move(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)
    with contextlib.suppress(OSError):  # marks of the overlay, where the file system keeps any
        for name in os.listxattr(target, follow_symlinks=False):
            if name.startswith(("trusted.overlay.", "user.overlay.")):
                os.removexattr(target, name, follow_symlinks=False)
