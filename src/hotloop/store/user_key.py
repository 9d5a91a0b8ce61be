"""A key of this user's own, so that secrets can be compared without being kept."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

_LENGTH = 32


def user_key() -> bytes | None:
    """Return the key in this user's cache folder, made at the first call; None: there is no place for it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    path = (Path(base) if base else Path.home() / ".cache") / "hotloop" / "key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_LENGTH))
        status = path.lstat()
        key = path.read_bytes() if status.st_uid == os.getuid() and not path.is_symlink() else b""
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    return key if len(key) == _LENGTH else None
