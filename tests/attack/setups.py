"""Places where a project may lie, and what is compared before and after."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_FILES = (
    "over",
    "over2",
    "append",
    "update",
    "descriptor",
    "truncate",
    "remove",
    "remove2",
    "rename",
    "replace",
)
_FILES += ("copy_from", "copy_over", "hard", "mode", "mode2", "times", "mapped", "linked")


class Setup(NamedTuple):
    """One set-up, made.

    Attributes:
        cwd: where the program starts.
        folder: where it writes, as it is told.
        watched: what must not change.
    """

    cwd: Path
    folder: str
    watched: tuple[Path, ...]


def furnish(folder: Path) -> Path:
    """Put there what the program changes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        (folder / name).write_text(name)
    for name in ("tree", "folder"):
        (folder / name / "deep").mkdir(parents=True)
        (folder / name / "inside").write_text("inside")
    (folder / "link").symlink_to("linked")
    connection = sqlite3.connect(folder / "runs.db")
    connection.execute("create table runs (id)")
    connection.execute("insert into runs values (1)")
    connection.commit()
    connection.close()
    with zipfile.ZipFile(folder / "archive.zip", "w") as file:
        file.writestr("old", "x")
    return folder


def snapshot(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Return everything about every file: bytes, mode, owner, times, link targets."""
    found: dict[str, tuple[object, ...]] = {}
    for folder in folders:
        for place, names, files in os.walk(os.fsencode(folder)):
            for name in (b"", *names, *files):
                path = os.path.join(place, name)
                status = os.lstat(path)
                content: object = None
                if os.path.islink(path):
                    content = os.readlink(path)
                elif os.path.isfile(path):
                    content = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
                key = os.fsdecode(path.rstrip(b"/"))
                found[key] = (status.st_mode, status.st_uid, status.st_nlink, status.st_mtime_ns, content)
    return found


@contextlib.contextmanager
def _temporary(base: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hotloop-attack-", dir=base))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _in(base: str) -> Iterator[Setup]:
    with _temporary(base) as project:
        yield Setup(project, str(furnish(project / "runs")), (project,))


@contextlib.contextmanager
def _link_out(base: str) -> Iterator[Setup]:
    """`ckpts` in the project leads to another disk, and the command says `ckpts`."""
    with _temporary(base) as project, _temporary("/dev/shm") as disk:
        furnish(disk / "real")
        (project / "ckpts").symlink_to(disk / "real")
        yield Setup(project, "ckpts", (project, disk))


@contextlib.contextmanager
def _chain_of_links(base: str) -> Iterator[Setup]:
    with _temporary(base) as project, _temporary("/var/tmp") as other:
        furnish(other / "real")
        (other / "second").symlink_to("real")
        (project / "first").symlink_to(other / "second")
        yield Setup(project, "./first", (project, other))


@contextlib.contextmanager
def _above(base: str) -> Iterator[Setup]:
    with _temporary(base) as top:
        furnish(top / "shared")
        (top / "project").mkdir()
        yield Setup(top / "project", "../shared", (top,))


@contextlib.contextmanager
def _repository(base: str) -> Iterator[Setup]:
    with _temporary(base) as top:
        (top / ".git").mkdir()
        furnish(top / "out")
        (top / "src").mkdir()
        yield Setup(top / "src", str(top / "out"), (top,))


@contextlib.contextmanager
def _odd_name(base: str) -> Iterator[Setup]:
    with _temporary(base) as top:
        project = top / os.fsdecode(b"a,b:c\\d e\nf\xff")
        furnish(project / "runs")
        yield Setup(project, "runs", (top,))


@contextlib.contextmanager
def _in_root() -> Iterator[Setup]:
    """The current folder is the root of the file system."""
    folder = Path("/") / f"hotloop-attack-{uuid.uuid4().hex[:8]}"
    try:
        yield Setup(Path("/"), folder.name, (furnish(folder),))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _mounted(kind: str, where: str) -> Iterator[Setup]:
    """A file system of its own: removable media, or one inside of the project."""
    with _temporary("/var/tmp") as top:
        point = top / where
        point.mkdir(parents=True)
        with _mount(kind, point):
            furnish(point / "runs")
            yield Setup(top if where != "disk" else point, str(point / "runs"), (top,))


@contextlib.contextmanager
def _mount(kind: str, point: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", kind, "none", str(point)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(point)], check=True)


SETUPS: dict[str, Callable[[], contextlib.AbstractContextManager[Setup]]] = {
    "temporary folder": lambda: _in("/tmp"),
    "beside the scratch folder": lambda: _in("/var/tmp"),
    "shared memory": lambda: _in("/dev/shm"),
    "home": lambda: _in(str(Path.home())),
    "link to another disk": lambda: _link_out("/var/tmp"),
    "chain of links": lambda: _chain_of_links("/tmp"),
    "above the project": lambda: _above("/tmp"),
    "repository": lambda: _repository("/var/tmp"),
    "odd name": lambda: _odd_name("/tmp"),
}
ROOT_SETUPS: dict[str, Callable[[], contextlib.AbstractContextManager[Setup]]] = {
    "system folder": lambda: _in("/usr/local/share"),
    "configuration folder": lambda: _in("/etc"),
    "run folder": lambda: _in("/run"),
    "root of the file system": _in_root,
    "removable disk": lambda: _mounted("tmpfs", "disk"),
    "disk inside the project": lambda: _mounted("tmpfs", "data/disk"),
}
