"""Where an allocator's shared library is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDERS = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
)


def find_library(name: str) -> str | None:
    """Return the path of `lib<name>`, the newest version of it; None: it is not installed.

    Looks where distributions and conda put libraries, and in LD_LIBRARY_PATH.
    """
    own = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*own, f"{sys.prefix}/lib", *FOLDERS):
        for stem in (f"lib{name}", f"lib{name}_minimal"):
            found = sorted(Path(folder).glob(f"{stem}.so*"))
            if found:
                return str(found[-1])
    return None
