"""Screens as text files: `HOTLOOP_WRITE_SCREENS=1 pytest tests/report` writes them anew, to be read in the diff."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import RenderableType

from .results import shown

FOLDER = Path(__file__).parent / "screens"


def matches(name: str, what: RenderableType) -> bool:
    """Whether a screen is what its file says."""
    return reads(name, f"{shown(what)}\n")


def reads(name: str, text: str) -> bool:
    """Whether text that is printed as it stands is what its file says."""
    file = FOLDER / f"{name}.txt"
    if os.environ.get("HOTLOOP_WRITE_SCREENS"):
        file.write_text(text)
    assert text == file.read_text()
    return True
