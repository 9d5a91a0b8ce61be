"""The files of a program that a patch may change, and whether they are still those that were observed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from hotloop.model.sites import Sites
from hotloop.model.tuning import Plan
from hotloop.patch.configurations import configurations
from hotloop.patch.imported import imported


def editable(sites: Sites, folder: Path, command: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the bytes of each file below the folder that a patch may change; a package elsewhere is left alone.

    These are the files with observed places, what they import from the folder (that is where options are declared), and
    the configuration files that they or the command line name.

    Args:
        sites: of the observed run.
        folder: the user's.
        command: the program's command line.
    """
    found = {}
    for path in sites.sources:
        file = folder / path
        if not Path(path).is_absolute() and file.is_file() and _is_below(file, folder):
            found[path] = file.read_bytes()
    sources = {**imported(found, folder), **found}
    return {**sources, **configurations(sources, command, folder)}


def _is_below(file: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, wherever links and `..` lead."""
    return file.resolve().is_relative_to(folder.resolve())


def outdated(sites: Sites, folder: Path) -> list[str]:
    """Return the files that have changed, or are gone, since they were observed."""
    return [
        path
        for path, digest in sites.sources.items()
        if not (folder / path).is_file() or digest_of((folder / path).read_bytes()) != digest
    ]


def sites_now(plan: Plan, folder: Path) -> Sites:
    """Return where to edit the files as they are: as they were observed, or with the patch that was written."""
    written = plan.patched.sites
    return written if written.sources and not outdated(written, folder) else plan.sites


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(content).hexdigest()
