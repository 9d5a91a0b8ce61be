"""Make hotloop importable beside a machine's own torch, without a network.

    python benchmarks/acceptance/prepare.py WHEELS TARGET

Installs from the folder WHEELS into the folder TARGET what hotloop needs and this Python lacks; what it has (torch,
NumPy, ...) stays the machine's own. Needs the standard library and pip alone.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def missing(wheels: Path, target: Path) -> Iterator[Path]:
    """Yield the wheels of packages that are not there, one of each."""
    here = {_plain(one.name) for one in importlib.metadata.distributions()}
    here |= (
        {_plain(one.name.split("-")[0]) for one in target.glob("*.dist-info")} if target.exists() else set()
    )
    for wheel in sorted(wheels.glob("*.whl")):
        name = _plain(wheel.name.split("-")[0])
        if name not in here | {"hotloop", "torch"}:
            here.add(name)
            yield wheel


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Install."""
    wheels, target = Path(sys.argv[1]), Path(sys.argv[2])
    found = list(missing(wheels, target))
    if found:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-index",
            "--no-deps",
            "--target",
            str(target),
        ]
        subprocess.run([*command, *map(str, found)], check=True)
    print(f"{len(found)} packages from {wheels} in {target}")


if __name__ == "__main__":
    main()
