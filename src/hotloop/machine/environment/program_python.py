"""Questions to another Python: it starts isolated, so that no module of the user's folder runs in it."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PATIENCE_S = 20.0
"""Environments on a network file system hold hundreds of packages."""
_PLACES = """
import os, site, sys
if sys.prefix == sys.base_prefix and sys.argv[1] and site.getusersitepackages():
    site.addsitedir(site.getusersitepackages())
sys.path += filter(None, sys.argv[2].split(os.pathsep))
del sys.argv[1:3]
"""
"""What isolation leaves out, behind the standard library: the user's own packages, and places that PYTHONPATH names."""


def isolated(python: str, code: str, folder: Path, before: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs code in a Python which imports what the user's program may import.

    Args:
        python: to start.
        code: with `sys` imported, and with `sys.argv[1:]` of what is put behind the returned words.
        folder: that the user's program runs in: PYTHONPATH may be relative to it.
        before: words before the program, such as `env NAME=VALUE`.
    """
    return [python, "-I", "-c", _PLACES + code, _has_user_site(), _python_path(folder, before)]


def python_with_torch() -> str | None:
    """Return hotloop's own Python where it has torch, else the one that `python` means here; None: neither has it.

    Hotloop may be installed in an environment of its own; then torch is in that of the program.
    """
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return _with_torch(os.environ.get("PATH", ""))


@functools.cache
def _with_torch(path: str) -> str | None:
    look = "import importlib.util; print(importlib.util.find_spec('torch') is not None)"
    for name in ("python", "python3"):
        found = shutil.which(name, path=path)
        if found is not None and (answer(found, look, Path.cwd()) or "").strip() == "True":
            return os.path.abspath(found)
    return None


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
            [*before, *isolated(python, code, folder, before)],
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


def _python_path(folder: Path, before: Sequence[str]) -> str:
    given = [word.partition("=")[2] for word in before if word.startswith("PYTHONPATH=")]
    named = (given or [os.environ.get("PYTHONPATH", "")])[-1].split(os.pathsep)
    return os.pathsep.join(os.path.join(folder.absolute(), place) for place in named if place)
