"""Whole sessions on recorded step times, with a known truth: what is decided, how narrowly, and in what time.

    python -m benchmarks.tune.designs [--sessions 10]

Seven candidates, four of them knobs: bf16 1.3x, a layout worth 1.1x beside bf16 and nothing alone, an allocator 1.15x,
and four that do nothing; budget 240 s, steps of 100 ms, start-ups of 4 s. Prints one row for each recorded program.
"""

from __future__ import annotations

import argparse
from statistics import median

from tests.stats.recorded import recorded
from tests.tune.test_realistic_noise import TRUTH, session

BY_HAND = 1.3 * 1.1 * 1.15


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10)
    num = parser.parse_args().sessions
    print(
        "| machine | program | proven | likely | share of by hand | half-width | decided | time (largest) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for condition in ("quiet", "busy, passive", "crowded"):
        for program in recorded(condition):
            print(_row(condition, program, num), flush=True)


def _row(condition: str, program: str, num: int) -> str:
    results = [session(TRUTH, seed, program, condition) for seed in range(num)]
    speedups = [result.plan.speedup for result in results if result.plan.speedup is not None]
    share = median(one.ratio for one in speedups) / BY_HAND if speedups else None
    width = median((one.high / one.low) ** 0.5 - 1 for one in speedups) if speedups else None
    walls = [result.wall_s for result in results]
    cells = (
        condition,
        program,
        f"{len(speedups)}/{num}",
        f"{sum(bool(result.likely) for result in results)}/{num}",
        "-" if share is None else f"{share:.2f}",
        "-" if width is None else f"{100 * width:.0f}%",
        f"{median(len({one.candidate.label for one in result.trials}) for result in results):.0f} of 7",
        f"{median(walls):.0f} s ({max(walls):.0f} s)",
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
