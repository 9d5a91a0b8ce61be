"""Run the attack suite and write what it counted: `python -m benchmarks.attack`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from tests.attack.counts import VARIABLE

from hotloop.launch.isolation import landlock
from hotloop.machine.host.identity import identity

RESULTS = Path(__file__).parents[1] / "results"
_TITLE = """# The attack suite

Each row is one kind of attack: how often it was tried, and how often it held: nothing of the user's changed (or the
command refused before its start), no traceback, no hang over 30 s, no more than 1 GB, nothing raw on the screen.
`make attack` makes this page; the programs are in `tests/attack`.
In guard mode the kernel denies what a shell, a Python without the guard and the C library write: the program gets an
error and nobody's file changes; these three ways count as held and not as seen by the program. So does renaming a
folder that was there before, in the overlay of an ordinary user: the kernel refuses it.
"""


def main() -> int:
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as counts:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "attack", "tests/attack"]
        done = subprocess.run(command, env={**os.environ, VARIABLE: counts.name}, check=False)
        rows = [json.loads(line) for line in counts]
    target = RESULTS / f"attack-{date.today()}{'' if os.getuid() == 0 else '-unprivileged'}.md"
    target.write_text(page(rows))
    sys.stdout.write(f"{target}\n")
    return done.returncode


def page(rows: Iterable[list[object]]) -> str:
    """Return the table as Markdown, with the machine it is of."""
    user = "root" if os.getuid() == 0 else "an unprivileged user"
    machine = f"{identity().cpu_model}, Linux {platform.release()}, Landlock {landlock.version()}, as {user}"
    lines = [_TITLE, f"{machine}, {date.today()}.", "", "| attack | tried | held | |", "|---|---|---|---|"]
    lines += [f"| {name} | {tried} | {held} | {note} |" for name, tried, held, note in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
