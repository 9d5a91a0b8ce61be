"""`python -m hotloop` as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HOTLOOP = (sys.executable, "-m", "hotloop")


def environment(**more: str) -> dict[str, str]:
    """Without what would change a screen."""
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}}
    return {**kept, "NO_COLOR": "1", **more}


def hotloop(
    *words: str, cwd: Path, stdin: str = "", limit_s: float = 120, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a hotloop command line to its end."""
    return subprocess.run(
        [*HOTLOOP, *words],
        cwd=cwd,
        input=stdin,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
