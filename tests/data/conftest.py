"""Folders and data sets to pack."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder whose files have what names can have: dots, no extension, capitals, a shared stem, nothing inside."""
    root = tmp_path / "files"
    (root / "deep" / "er").mkdir(parents=True)
    names = ["a.jpg", "a.txt", "a.b.jpg", "a.c.jpg", "README", "a.JPG", "é 100%.bin", "empty.bin", "a.cls"]
    for number, name in enumerate(names):
        (root / name).write_bytes(b"" if name == "empty.bin" else bytes([number]) * (500 * number + 1))
        (root / "deep" / "er" / name).write_bytes(name.encode())
    (root / ".hidden").write_bytes(b"x")
    (root / "deep" / ("long" * 40)).write_bytes(b"a name longer than a header has room for")
    return root


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of classes."""
    root = tmp_path / "images"
    for number, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True)
        for at in range(5):
            Image.new("RGB", (4, 3), (40 * at, 100 * number, 7)).save(root / name / f"{at}.png")
    return root
