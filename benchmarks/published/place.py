"""Lay out one script to be run: a copy of its repository, its data, its command and environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import msgspec

from benchmarks.published.corpus import Entry
from benchmarks.published.data import MAKERS, make

_PREPARED = Path(__file__).with_name("prepared.py")


@dataclass(frozen=True)
class Program:
    """What is run."""

    argv: tuple[str, ...]
    folder: Path
    environment: dict[str, str]


class Absent(Exception):  # noqa: N818 - the reason why an entry cannot be run here
    """A source or a package is missing."""


def source_of(entry: Entry, sources: Path) -> Path:
    """Return where the repository of an entry lies."""
    return sources / entry.repository.replace("/", "+")


def fetch(entry: Entry, sources: Path) -> None:
    """Bring a repository at its commit, from github.com; nothing where it is there."""
    folder = source_of(entry, sources)
    if folder.exists():
        return
    folder.mkdir(parents=True)
    url = f"https://github.com/{entry.repository}"
    for words in (
        ("init", "-q"),
        ("fetch", "-q", "--depth", "1", url, entry.commit),
        ("checkout", "-q", "FETCH_HEAD"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)


def lengthened(entry: Entry) -> Entry:
    """Return the entry with arguments that make it go on, and as much data as it has in truth."""
    before = ("", *entry.arguments)
    longer = [
        entry.long.get(option, word) if "=" not in word else entry.long.get(word, word)
        for option, word in pairwise(before)
    ]
    constants = {**entry.constants, **({"conf.settings.EPOCH": 1000} if entry.name == "cifar100" else {})}
    whole = f"{entry.data}_whole"
    return msgspec.structs.replace(
        entry,
        arguments=tuple(longer),
        constants=constants,
        data=whole if whole in MAKERS else entry.data,
    )


def lay_out(entry: Entry, sources: Path, site: Path | None, into: Path) -> Program:
    """Copy an entry's repository into a folder and make its data there.

    Raises:
        Absent: its sources, or a package that it needs.
    """
    source = source_of(entry, sources)
    if not (source / entry.script).exists():
        raise Absent(f"no sources of {entry.repository}")
    missing = [name for name in entry.packages if not _is_there(name, site)]
    if missing:
        raise Absent(f"needs {', '.join(missing)}")
    repository = into / "repository"
    if not repository.exists():
        shutil.copytree(source, repository, ignore=shutil.ignore_patterns(".git"))
    script = repository / entry.script
    folder = (repository / entry.folder).resolve() if entry.folder else script.parent
    data = (folder / entry.at).resolve()
    if entry.data is not None:
        make(entry.data, data)
    places = {"repository": str(repository), "folder": str(folder), "data": str(data)}
    words = [os.path.relpath(script, folder), *(word.format(**places) for word in entry.arguments)]
    if entry.constants or (entry.data or "").startswith("cifar"):
        words = [str(_PREPARED), json.dumps(entry.constants), *words]
    return Program((sys.executable, *words), folder, _environment(entry, site, places))


def _environment(entry: Entry, site: Path | None, places: dict[str, str]) -> dict[str, str]:
    own = {name: value.format(**places) for name, value in entry.environment.items()}
    paths = [own.get("PYTHONPATH"), str(site) if site else None, os.environ.get("PYTHONPATH")]
    fixed = {"PYTHONPATH": os.pathsep.join(path for path in paths if path), "MPLBACKEND": "Agg"}
    # Sets of strings are in another order in every process: one script numbers its classes by it.
    same = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **same, **own, **fixed}


def _is_there(package: str, site: Path | None) -> bool:
    return find_spec(package) is not None or (site is not None and any(site.glob(f"{package}*")))
