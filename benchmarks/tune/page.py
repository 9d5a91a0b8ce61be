"""What every results page begins with."""

from __future__ import annotations

import datetime
from importlib.metadata import version
from pathlib import Path

from hotloop.machine.host.identity import identity

RESULTS = Path(__file__).parents[1] / "results"


def write(name: str, title: str, lines: list[str]) -> None:
    """Write and print a page with machine and date."""
    machine, today = identity(), datetime.date.today().isoformat()
    head = [
        f"# {title}, {today}",
        "",
        f"{machine.cpu_model}, {machine.num_cores} cores, {machine.memory_bytes >> 30} GiB, "
        f"isa {' '.join(machine.isa) or '-'}, torch {version('torch')}, Python {machine.python_version}.",
        "",
    ]
    text = "\n".join([*head, *lines]) + "\n"
    (RESULTS / f"{name}-{today}.md").write_text(text)
    print(text)
