"""Compile and tuning caches of an arm, which begin with what the user's hold.

Compiled code is found by what it was compiled from, so all plans of a session share it: it is compiled once. What a
library tunes for itself (MIOpen's database, the driver's code for a device) is the plan's own.
"""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

MAX_COPIED_BYTES = 64 << 20
"""Of what is not linked: metadata and sources."""
COMPILED = frozenset({".so", ".o", ".a", ".cubin", ".hsaco"})
"""Written once and replaced as a whole, so a link is enough, which a replacement takes the place of; whatever is
written through it goes where all that is written to the user's files goes. Other files are copied."""


COMPILERS, TUNERS = ("inductor", "triton"), ("miopen", "cuda")
"""Of the caches: those of compiled code, and those that libraries tune for themselves."""


def seed_caches(environment: Mapping[str, str], caches: Path, names: Collection[str]) -> None:
    """Give caches what the user's already hold, once; the user's are never written.

    Args:
        environment: the user's.
        caches: their folder; where it exists, it has been seeded before.
        names: of `COMPILERS` and `TUNERS`.
    """
    if caches.exists():
        return
    caches.mkdir(parents=True)
    for name, theirs in _of_the_user(environment):
        if name in names and theirs.is_dir():
            _link_tree(theirs, caches / name)


def _of_the_user(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = Path(environment.get("HOME", Path.home()))
    inductor = Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
    yield "inductor", Path(environment.get("TORCHINDUCTOR_CACHE_DIR", inductor))
    yield "triton", Path(environment.get("TRITON_CACHE_DIR", home / ".triton" / "cache"))
    yield "miopen", Path(environment.get("MIOPEN_USER_DB_PATH", home / ".config" / "miopen"))
    yield "cuda", Path(environment.get("CUDA_CACHE_PATH", home / ".nv" / "ComputeCache"))


def _link_tree(source: Path, target: Path) -> None:
    """Take over a tree's files; what vanishes meanwhile, or may not be read, is left out."""
    left = MAX_COPIED_BYTES
    for folder, _, names in os.walk(source):
        there = target / Path(folder).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            file = Path(folder) / name
            try:
                if file.suffix in COMPILED:
                    (there / name).symlink_to(file.absolute())
                elif (size := file.stat().st_size) <= left:
                    shutil.copy2(file, there / name)
                    left -= size
            except OSError:
                continue
