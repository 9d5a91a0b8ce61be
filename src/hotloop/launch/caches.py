"""Compile and tuning caches of an arm: its plan's own, which begin with what the user's hold."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

MAX_COPIED_BYTES = 64 << 20
"""Of what is not linked: metadata and sources. A session may have thirty plans, and each has its own."""
COMPILED = frozenset({".so", ".o", ".a", ".cubin", ".hsaco"})
"""Written once and replaced as a whole, so a link is enough, which a replacement takes the place of; whatever is
written through it goes where all that is written to the user's files goes. Other files are copied."""


def seed_caches(environment: Mapping[str, str], caches: Path) -> None:
    """Give a plan's caches what the user's already hold, once; the user's are never written.

    Args:
        environment: the user's.
        caches: the plan's folder; where it exists, it has been seeded before.
    """
    if caches.exists():
        return
    caches.mkdir(parents=True)
    for name, theirs in _of_the_user(environment):
        if theirs.is_dir():
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
