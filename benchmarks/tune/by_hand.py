"""The demo's plan against the same program tuned by a person.

    python -m benchmarks.tune.by_hand FOLDER [--rounds 5]

FOLDER holds train.py, data/ and hotloop.toml as `hotloop demo` left them. Whole processes alternate; a run of 20 steps
is taken off a run of 120, so that start-up does not count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.tune.page import write

EXAMPLE = Path(__file__).parents[2] / "examples" / "jpeg_classifier"
BY_HAND = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}


def seconds_a_step(command: list[str], folder: Path, extra: dict[str, str]) -> float:
    """Return the time of 100 steps, per step."""
    times = []
    for steps in (20, 120):
        began = time.monotonic()
        subprocess.run(
            [*command, "--steps", str(steps), "--out", "/tmp/by-hand-out"],
            cwd=folder,
            env={**os.environ, **extra},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        times.append(time.monotonic() - began)
    return (times[1] - times[0]) / 100


def main() -> None:
    """Alternate the three programs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    shutil.copy(EXAMPLE / "train_by_hand.py", args.folder)
    run = [sys.executable, "-m", "hotloop", "run", "--force", "--plan", "hotloop.toml"]
    programs = {
        "as it was": ([sys.executable, "train.py"], {}),
        "hotloop's plan": ([*run, sys.executable, "train.py"], {}),
        "by hand": ([sys.executable, "train_by_hand.py"], BY_HAND),
    }
    rounds = []
    for number in range(args.rounds):
        names = list(programs) if number % 2 == 0 else list(reversed(programs))
        times = {name: seconds_a_step(programs[name][0], args.folder, programs[name][1]) for name in names}
        rounds.append(times)
        print({name: round(value, 4) for name, value in times.items()}, flush=True)
    lines = [f"Median of {args.rounds} interleaved rounds, with the smallest and the largest.", ""]
    for title, slow, fast in (
        ("hotloop's plan over the program as it was", "as it was", "hotloop's plan"),
        ("by hand over the program as it was", "as it was", "by hand"),
        ("hotloop's plan over by hand (1 is as good)", "by hand", "hotloop's plan"),
    ):
        ratios = sorted(times[slow] / times[fast] for times in rounds)
        lines.append(f"- {title}: {statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]")
    write("by-hand", "The demo, tuned by hotloop and by hand", lines)


if __name__ == "__main__":
    main()
