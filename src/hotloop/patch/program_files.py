"""The files that a plan's places stand in, and whether they are still those that were observed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hotloop.model.sites import Sites


def editable(sites: Sites, folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file below the folder; others (a package elsewhere) are left alone."""
    found = {}
    for path in sites.sources:
        file = folder / path
        if not Path(path).is_absolute() and file.is_file():
            found[path] = file.read_bytes()
    return found


def outdated(sites: Sites, folder: Path) -> list[str]:
    """Return the files that have changed, or are gone, since they were observed."""
    return [
        path
        for path, digest in sites.sources.items()
        if not (folder / path).is_file() or digest_of((folder / path).read_bytes()) != digest
    ]


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(content).hexdigest()
