"""Times train.py against train_by_hand.py in alternating runs: A B B A, seconds a step from step 40 to step 120.

    python compare.py --rounds 5        # some three minutes on a quiet two-core machine
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST, LAST = 40, 120  # both are multiples of 20, at which the programs print; the first steps fill the loader's queue
BY_HAND = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}


def seconds_a_step(script, environment):
    """Starts the script anew and takes the time between two of its own lines."""
    seen = {}
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, str(HERE / script), "--steps", str(LAST), "--out", out]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
            for line in process.stdout:
                words = line.split()
                if "step" in words:
                    seen[int(words[words.index("step") + 1])] = time.perf_counter()
    return (seen[LAST] - seen[FIRST]) / (LAST - FIRST)


def main():
    parser = argparse.ArgumentParser(description="Compare the two programs.")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    arms = [("train.py", {}), ("train_by_hand.py", BY_HAND)]
    times = {script: [] for script, _ in arms}
    for index in range(args.rounds):
        for script, environment in arms if index % 2 == 0 else arms[::-1]:
            times[script].append(seconds_a_step(script, environment))
            print(f"{script:18} {1000 * times[script][-1]:7.1f} ms a step", flush=True)
    ratios = [a / b for a, b in zip(times["train.py"], times["train_by_hand.py"])]
    print(f"by hand {statistics.median(ratios):.2f}x faster (from {min(ratios):.2f} to {max(ratios):.2f}), {args.rounds} pairs")


if __name__ == "__main__":
    main()
