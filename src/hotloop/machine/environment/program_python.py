"""Questions to another Python: it starts isolated, so that no module of the user's folder runs in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

PATIENCE_S = 20.0
"""Environments on a network file system hold hundreds of packages."""
_PLACES = """
import site, sys
if sys.prefix == sys.base_prefix and sys.argv[1] and site.getusersitepackages():
    site.addsitedir(site.getusersitepackages())
sys.path += sys.argv[2:]
"""
"""What isolation leaves out, behind the standard library: the user's own packages, and places that PYTHONPATH names."""


def answer(python: str, code: str, folder: Path, before: Sequence[str] = ()) -> str | None:
    """Return what a Python prints for a program; None: there is no such Python, or it failed.

    Args:
        python: to start.
        code: that may import what the user's program may import.
        folder: that the user's program runs in: PYTHONPATH may be relative to it.
        before: words before it, such as `env NAME=VALUE`.
    """
    try:
        done = subprocess.run(
            [*before, python, "-I", "-c", _PLACES + code, _has_user_site(), *_python_path(folder, before)],
            capture_output=True,
            cwd=folder,
            timeout=PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")


def _has_user_site() -> str:
    return "" if os.environ.get("PYTHONNOUSERSITE") else "1"


def _python_path(folder: Path, before: Sequence[str]) -> list[str]:
    given = [word.partition("=")[2] for word in before if word.startswith("PYTHONPATH=")]
    named = (given or [os.environ.get("PYTHONPATH", "")])[-1].split(os.pathsep)
    return [os.path.join(folder.absolute(), place) for place in named if place]
