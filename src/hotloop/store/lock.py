"""The claim on a session: one hotloop goes on with it, or removes it, at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from hotloop.model.errors import HotloopError

_CLAIM = ".lock"


class InUseError(HotloopError):
    """Another hotloop is at a session."""


def claimed(path: Path, hint: str) -> int:
    """Return a descriptor; as long as it is open no other hotloop can have one of this session.

    Raises:
        InUseError: a different process holds it.
    """
    descriptor = os.open(
        path.with_suffix(_CLAIM), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InUseError(f"session {path.stem} is being used by another hotloop", hint) from None
    return descriptor


def release(path: Path, descriptor: int) -> None:
    """Let others have the session again."""
    path.with_suffix(_CLAIM).unlink(missing_ok=True)
    os.close(descriptor)
