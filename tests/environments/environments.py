"""Two environments: one that holds torch alone, and one that holds hotloop and what it needs, without torch.

No installer runs: each is a virtual environment whose packages are links to those of the tests' own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import hotloop


def torch_alone(folder: Path) -> Path:
    """Make an environment with torch and what torch itself needs; return its Python."""
    packages = _empty(folder)
    _link(packages, _with_needs(["torch"]))
    return folder / "bin" / "python"


def hotloop_alone(folder: Path, *more: str) -> Path:
    """Make an environment with hotloop and what hotloop itself needs; return its Python.

    Args:
        folder: where to.
        more: distributions of extras.
    """
    packages = _empty(folder)
    _link(packages, _with_needs(["hotloop", *more]) - {"hotloop"})
    (packages / "hotloop").symlink_to(Path(hotloop.__file__).parent)
    return folder / "bin" / "python"


def _empty(folder: Path) -> Path:
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    return packages


def _with_needs(names: Iterable[str]) -> set[str]:
    """Return distributions and all that they need on this machine, extras left out."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # of another system or another Python
            continue
        if name not in found:
            found.add(name)
            pending += [
                need for each in needs if "extra ==" not in each for need in re.findall(r"^[\w.-]+", each)
            ]
    return found


def _link(packages: Path, names: Iterable[str]) -> None:
    programs = packages.parents[2] / "bin"
    for name in names:
        for file in distribution(name).files or []:
            place = packages / file.parts[0] if file.parts[0] != ".." else programs / file.name
            source = Path(
                str(distribution(name).locate_file(file.parts[0] if file.parts[0] != ".." else file))
            )
            wanted = file.parts[0] != "__pycache__" and (file.parts[0] != ".." or "bin" in file.parts)
            if wanted and source.exists() and not place.exists():
                place.symlink_to(source)
