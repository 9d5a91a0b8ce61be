"""`python -m benchmarks.lint FOLDER [--lines N] [--markdown FILE]`: lines per second of `hotloop lint`.

Any folder of PyTorch sources will do: the site-packages of transformers or torch, or a checkout of examples.
Files that never mention torch are left out, so that none is skipped cheaply, and files are taken until there
are enough lines. The command is run as a user runs it, in a process of its own.
"""

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reading:
    """One run of the command."""

    wall_s: float
    cpu_s: float


def sources(folder: Path, num_lines: int) -> tuple[list[str], int]:
    """Files that mention torch, in order of their names, up to the number of lines."""
    chosen: list[str] = []
    lines = 0
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "torch" not in text:
            continue
        chosen.append(str(path))
        lines += text.count("\n")
        if lines >= num_lines:
            break
    return chosen, lines


def read_once(files: Sequence[str]) -> Reading:
    """Run the command over the files."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "hotloop", "lint", "--format", "json", *files],
        check=False,
        capture_output=True,
    )
    wall_s = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.decode())
    return Reading(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def report(num_files: int, lines: int, readings: Sequence[Reading]) -> str:
    """The readings as Markdown."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wall_s = statistics.median(one.wall_s for one in readings)
    cpu_s = statistics.median(one.cpu_s for one in readings)
    rows = [
        f"{lines} lines in {num_files} files, {cores} cores, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} at the end.",
        "",
        "| run | wall s | CPU s | lines/s | lines/CPU s |",
        "|---|---|---|---|---|",
    ]
    for number, one in enumerate(readings, 1):
        rates = f"{lines / one.wall_s:.0f} | {lines / one.cpu_s:.0f}"
        rows.append(f"| {number} | {one.wall_s:.2f} | {one.cpu_s:.2f} | {rates} |")
    per = 100_000 / lines
    rows.append(f"\nMedian: {per * wall_s:.1f} s wall and {per * cpu_s:.1f} s CPU per 100,000 lines.")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Read the arguments, run, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    files, lines = sources(given.folder, given.lines)
    text = report(len(files), lines, [read_once(files) for _ in range(given.runs)])
    print(text)
    if given.markdown is not None:
        given.markdown.write_text(f"# Lint speed\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
