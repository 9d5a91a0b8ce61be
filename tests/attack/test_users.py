"""Two users of one machine: what one prepares, the other does not run, follow or read."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hotloop
from tests.attack.counts import count

pytestmark = [pytest.mark.attack, pytest.mark.slow]
_ROOT = """
import sys
from hotloop.launch.isolation.scratch import new_scratch, scratch_root
root = scratch_root()
print(root, oct(root.stat().st_mode & 0o777), root.stat().st_uid, new_scratch("arm"))
"""


@pytest.fixture
def users() -> tuple[int, int]:
    """The ids of a victim and of an attacker."""
    if os.getuid() != 0:
        pytest.skip("only root can act for other users")
    known = [user for user in pwd.getpwall() if 1000 <= user.pw_uid < 60000]
    return (known[0].pw_uid, known[1].pw_uid) if len(known) > 1 else (61001, 61002)


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A world-writable folder, as `/var/tmp` is."""
    folder = Path("/var/tmp") / f"hotloop-users-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def _as(user: int, program: str, shared: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python program as a user, by a Python that he may execute."""
    python = sys.executable if os.access("/root", os.X_OK) and _may_execute(user) else "/usr/bin/python3"
    places = [
        str(Path(hotloop.__file__).parents[1]),
        *(place for place in sys.path if "site-packages" in place),
    ]
    return subprocess.run(
        [python, "-I", "-c", f"import sys; sys.path[:0] = {places!r}\n{program}"],
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        env={"HOTLOOP_SCRATCH": str(shared), "PATH": "/usr/bin:/bin"},
    )


def _may_execute(user: int) -> bool:
    real = Path(sys.executable).resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)


PREPARED: dict[str, Callable[[Path], None]] = {
    "a folder": lambda path: path.mkdir(mode=0o777),
    "a folder that all may write to": lambda path: (path.mkdir(), path.chmod(0o777))[0],
    "a link to his own folder": lambda path: path.symlink_to(path.parent),
    "a dangling link": lambda path: path.symlink_to("/nowhere"),
    "a file": lambda path: path.touch(),
}


def test_a_scratch_root_that_somebody_else_made_is_not_used(users: tuple[int, int], shared: Path) -> None:
    victim, attacker = users
    held = 0
    for make in PREPARED.values():
        taken = shared / f"hotloop-{victim}"
        make(taken)
        os.lchown(taken, attacker, attacker)
        done = _as(victim, _ROOT, shared)
        if done.returncode and "No module named" in done.stderr:
            pytest.skip("no Python here that other users may execute")
        assert done.returncode == 0, done.stderr
        root, mode, owner, scratch = done.stdout.split()
        held += root != str(taken) and mode == "0o700" and int(owner) == victim and scratch.startswith(root)
        subprocess.run(["rm", "-rf", str(taken)], check=True)
    count("scratch folders prepared by another user", len(PREPARED), held)
    assert held == len(PREPARED)


def test_a_private_root_stays_private(users: tuple[int, int], shared: Path) -> None:
    victim, attacker = users
    first = _as(victim, _ROOT, shared)
    if first.returncode and "No module named" in first.stderr:
        pytest.skip("no Python here that other users may execute")
    root = Path(first.stdout.split()[0])
    root.chmod(0o777)  # as an earlier version, or a careless hand, left it
    again = _as(victim, _ROOT, shared)
    assert again.stdout.split()[:2] == [str(root), "0o700"]
    other = _as(attacker, f"import os; print(os.listdir({str(root)!r}))", shared)
    count("folders of another user that can be read", 1, int("PermissionError" in other.stderr))
    assert "PermissionError" in other.stderr
