"""How often verdicts and parity are wrong, on simulated sessions.

Run from the repository's root: `python -m benchmarks.verdicts [--sessions N]`. Writes
`benchmarks/results/verdicts-DATE.md`.
"""

import argparse
import datetime
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.verdicts.parity import parity_table
from benchmarks.verdicts.sessions import verdict_table

_RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Run every simulation and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000, help="simulated sessions per row (2000)")
    num = parser.parse_args().sessions
    begun = time.perf_counter()
    lines = list(_page(num))
    lines.append(f"Simulated in {time.perf_counter() - begun:.0f} s.")
    path = _RESULTS / f"verdicts-{datetime.date.today().isoformat()}.md"
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _page(num: int) -> Iterator[str]:
    yield f"# Verdicts on simulated sessions, {datetime.date.today().isoformat()}"
    yield ""
    yield (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}. Seeds are fixed: "
        "the counts come out the same elsewhere."
    )
    yield ""
    yield from verdict_table(num)
    yield from parity_table(max(1, num // 4))


if __name__ == "__main__":
    main()
