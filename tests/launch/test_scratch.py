"""Scratch folders are this user's alone, and what is full is said to be full."""

from __future__ import annotations

import os
import shutil
import stat
from collections import namedtuple
from pathlib import Path

import pytest

from hotloop.launch.isolation.scratch import check_space, new_scratch, scratch_root
from hotloop.model.errors import ExitCode, HotloopError

_Usage = namedtuple("_Usage", "total used free")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOTLOOP_SCRATCH", str(tmp_path))
    return tmp_path


def test_what_is_no_folder_of_this_users_is_not_used(base: Path) -> None:
    (base / "elsewhere").mkdir()
    taken = base / f"hotloop-{os.getuid()}"
    taken.symlink_to("elsewhere")
    root = scratch_root()
    assert root != taken
    assert root == scratch_root()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert list((base / "elsewhere").iterdir()) == []


def test_a_root_that_others_may_enter_is_closed(base: Path) -> None:
    taken = base / f"hotloop-{os.getuid()}"
    taken.mkdir()
    taken.chmod(0o777)
    assert scratch_root() == taken
    assert stat.S_IMODE(taken.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("free", "log", "is_full"),
    [
        (0, "", True),
        (32 << 20, "OSError: No space left on device", True),
        (32 << 20, "", False),
        (1 << 40, "x", False),
    ],
)
def test_a_full_scratch_folder_is_said(
    base: Path, monkeypatch: pytest.MonkeyPatch, free: int, log: str, is_full: bool
) -> None:
    scratch = new_scratch("arm")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(free, 0, free))
    if not is_full:
        check_space(scratch, log)
        return
    with pytest.raises(HotloopError, match="no space is left in") as caught:
        check_space(scratch, log)
    assert caught.value.code is ExitCode.MACHINE
    assert "HOTLOOP_SCRATCH" in caught.value.hint


@pytest.mark.parametrize(
    ("mode", "owner", "is_used"),
    [(0o1777, 0, True), (0o755, None, True), (0o777, 0, False), (0o775, 0, False), (0o755, 61_001, False)],
    ids=["sticky", "ours", "no sticky bit", "of a group", "another's"],
)
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_in_which_others_may_rename_holds_no_scratch(
    mode: int, owner: int | None, is_used: bool, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder above counts, too: who may rename it may put another in its place."""
    place = base / "place"
    (place / "inner").mkdir(parents=True)
    if owner is not None:
        os.chown(place, owner, 61_002)
    place.chmod(mode)
    monkeypatch.setenv("HOTLOOP_SCRATCH", str(place / "inner"))
    if is_used:
        assert scratch_root().parent == place / "inner"
        return
    with pytest.raises(HotloopError, match=f"other users may replace what lies in {place}") as caught:
        scratch_root()
    assert "sticky bit" in caught.value.hint
    assert list((place / "inner").iterdir()) == []
