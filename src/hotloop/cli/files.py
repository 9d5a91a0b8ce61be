"""Write result files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.errors import ExitCode, HotloopError


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON.

    Raises:
        HotloopError: the file cannot be written.
    """
    write_text(path, msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def check_writable(path: Path) -> None:
    """Demand that a file can be written later.

    Raises:
        HotloopError: its folder is not there, or may not be written to.
    """
    folder = path.parent
    reason = "it may not be written to" if folder.is_dir() else "there is no such folder"
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise HotloopError(
            f"{path} could not be written in {folder}: {reason}",
            "choose another place for it",
            ExitCode.MACHINE,
        )


def write_text(path: Path, text: str) -> None:
    """Write a text file.

    Raises:
        HotloopError: the file cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that a full disk leaves the old one whole.

    Raises:
        HotloopError: the file cannot be written.
    """
    scratch: str | None = None
    try:
        descriptor, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
    except OSError as error:
        if scratch is not None:
            Path(scratch).unlink(missing_ok=True)
        raise HotloopError(
            f"{path} cannot be written: {error.strerror}", "choose another place for it", ExitCode.MACHINE
        ) from error
