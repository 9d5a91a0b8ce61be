"""Run Python as a user who is not root, in projects as they lie on shared machines."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import hotloop

USER, OTHER, TEAM = 61_001, 61_002, 61_003
"""Numbers of two users and of a group, which nothing on the machine need know."""
ROOT_OF_TESTS = Path(__file__).parents[2]


class Project(NamedTuple):
    """A project of the ordinary user.

    Attributes:
        folder: where the command is typed.
        home: of the user.
        watched: what must not change.
    """

    folder: Path
    home: Path
    watched: Path


def python() -> str | None:
    """Return a Python of this version that any user may execute; None: there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        real = Path(name).resolve() if name else None
        if real is not None and all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents):
            return str(name)
    return None


def may_be_read() -> bool:
    """Whether an ordinary user can read this code and its libraries."""
    places = (Path(hotloop.__file__), Path(sysconfig.get_paths()["purelib"]), ROOT_OF_TESTS)
    return all(folder.stat().st_mode & stat.S_IXOTH for path in places for folder in path.resolve().parents)


def run(
    words: list[str], project: Project, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as the ordinary user, in the project, and return what it printed."""
    paths = (Path(hotloop.__file__).parents[1], Path(sysconfig.get_paths()["purelib"]), ROOT_OF_TESTS)
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(project.home),
        "USER": "somebody",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        **(variables or {}),
    }
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=project.folder,
        env=environment,
        user=USER,
        group=USER,
        extra_groups=[TEAM],
        umask=0o002,
    )


def give(path: Path, user: int, group: int, mode: int) -> Path:
    """Make a folder of somebody's."""
    path.mkdir()
    os.chown(path, user, group)
    path.chmod(mode)
    return path


def give_all(path: Path, user: int, group: int) -> None:
    """Make a tree somebody's, writable for the group."""
    for place, folders, files in os.walk(path):
        for name in (*folders, *files):
            whole = os.path.join(place, name)
            os.lchown(whole, user, group)
            if not os.path.islink(whole):
                os.chmod(whole, 0o2775 if os.path.isdir(whole) else 0o664)
