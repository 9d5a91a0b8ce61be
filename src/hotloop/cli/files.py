"""Write result files: whole or not at all; what is not a regular file is written through."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import encodable, inert_json
from hotloop.model.secrets import free_of_secrets

STDOUT = Path("-")
"""What the user writes for standard output in the place of a file."""
_OUTPUT = "hotloop.cli.files.output"
"""Where a command's context keeps the descriptor of standard output while text is put aside."""


def text_aside(context: click.Context) -> None:
    """Send what is printed to standard error, until the command ends: standard output is for a result alone.

    The user's program inherits that, so that its own output is no part of the result.
    """
    if _OUTPUT in context.meta:
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    context.meta[_OUTPUT] = saved
    context.call_on_close(lambda: _restore(saved))


def _restore(saved: int) -> None:
    sys.stdout.flush()
    os.dup2(saved, 1)
    os.close(saved)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON.

    Raises:
        HotloopError: the file cannot be written.
    """
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return a value as indented JSON with a line end, free of secrets; names that are no UTF-8 are written out."""
    plain = free_of_secrets(value)
    try:
        encoded = msgspec.json.encode(plain)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(encodable(plain))
    return inert_json(msgspec.json.format(encoded, indent=2).decode()) + "\n"


def check_writable(path: Path) -> None:
    """Demand that a file can be written later.

    Raises:
        HotloopError: its folder is not there, or may not be written to.
    """
    if path == STDOUT:
        return
    folder = path.parent
    wanted = path if path.exists() and not path.is_file() else folder
    if not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif path.is_dir():
        reason = "it is a folder"
    elif not os.access(wanted, os.W_OK):
        reason = f"{wanted.absolute()} may not be written to"
    else:
        return
    raise HotloopError(
        f"{path} could not be written: {reason}", "choose another place for it", ExitCode.MACHINE
    )


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file; `-` is standard output.

    Args:
        path: the file.
        text: what it will hold.
        private: a new file is for its owner only, as sessions are.

    Raises:
        HotloopError: the file cannot be written.
    """
    write_bytes(path, text.encode(errors="backslashreplace"), private=private)


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file through a temporary one beside it, so that a full disk leaves the old one whole.

    What is not a regular file (a pipe, a device, a link to one) is written through, never replaced; a link to a file
    stays, and the file it leads to is replaced. The file before keeps its mode; a new one gets what the umask leaves.
    What is private lies in a folder of ours, and nothing there is followed: a link in its place is replaced.

    Raises:
        HotloopError: the file cannot be written, or is a link that leads nowhere.
    """
    try:
        if path == STDOUT:
            sys.stdout.flush()
            context = click.get_current_context(silent=True)
            _write_through(1 if context is None else context.meta.get(_OUTPUT, 1), content)
            return
        place = path if private else _followed(path)
        mode = _mode(place) if not (private and path.is_symlink()) else None
        if mode is not None and not stat.S_ISREG(mode):
            with place.open("wb", buffering=0) as file:
                _write_through(file.fileno(), content)
            return
        _replace(place, content, stat.S_IMODE(mode) if mode is not None else _new_mode(private=private))
    except OSError as error:
        if path == STDOUT and isinstance(error, BrokenPipeError):  # whoever read has had enough
            raise
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise HotloopError(
            f"{path} cannot be written: {error.strerror}",
            "free some space, or choose a place on another disk" if full else "choose another place for it",
            ExitCode.MACHINE,
        ) from error


def _followed(path: Path) -> Path:
    """Where links lead to; `/dev/stdout` leads to an open descriptor that may have no name, so it is taken as it is."""
    if str(path) in {"/dev/stdout", "/dev/stderr"} or str(path).startswith(("/dev/fd/", "/proc/")):
        return path
    if not path.is_symlink():
        return path
    if not path.exists():  # who made it may want a file made elsewhere
        raise HotloopError(f"{path} is a link that leads nowhere", "remove it, or choose another place")
    return Path(os.path.realpath(path))


def _mode(place: Path) -> int | None:
    """Return what a file is; standard output and its like count as what they are open on, never as a regular file."""
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return None
    return stat.S_IFIFO if str(place).startswith(("/dev/", "/proc/")) else mode


def _write_through(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _replace(place: Path, content: bytes, mode: int) -> None:
    descriptor, scratch = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(scratch).chmod(mode)
        Path(scratch).replace(place)
    except OSError:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise


def _new_mode(*, private: bool) -> int:
    return (0o600 if private else 0o666) & ~_umask()


def _umask() -> int:
    """The umask can only be read by setting it."""
    current = os.umask(0o077)
    os.umask(current)
    return current
