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
    python, packages = _empty(folder)
    _link(packages, _with_needs(["torch"]))
    return python


def hotloop_alone(folder: Path) -> Path:
    """Make an environment with hotloop and what hotloop itself needs; return its Python."""
    python, packages = _empty(folder)
    _link(packages, _with_needs(["hotloop"]) - {"hotloop"})
    (packages / "hotloop").symlink_to(Path(hotloop.__file__).parent)
    return python


def _empty(folder: Path) -> tuple[Path, Path]:
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = folder / "packages"
    packages.mkdir()
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    return folder / "bin" / "python", packages


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
    for name in names:
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            place = Path(str(distribution(name).locate_file(top)))
            if place.exists() and not (packages / top).exists():
                (packages / top).symlink_to(place)
