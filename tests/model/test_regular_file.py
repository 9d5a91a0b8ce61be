"""What is no regular file, or too large, is not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.model.regular_file import IrregularFileError, regular_bytes


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    assert regular_bytes(tmp_path / "file", 4) == b"1234"
    with pytest.raises(IrregularFileError, match="is larger"):
        regular_bytes(tmp_path / "file", 3)


def test_pipes_devices_and_folders_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match=r"regular|directory"):
            regular_bytes(path, 10)
