"""What observing costs: the time of a step with the hooks on over the time with them off.

Run from the repository's root: `python -m benchmarks.overhead [--seconds S] [--processes N]`. Each process trains one
model on one thread and takes the hooks out and puts them back, block by block (off, on, on, off); the interval holds
the variance between processes and between blocks. Writes `benchmarks/results/overhead-DATE.md`; exit code 1 where an
interval lies above the limit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.model.ratio import Ratio
from hotloop.stats.pairs import ratio_interval

LIMIT = 1.01
"""Observing is promised to cost less than 1% of a step."""
_RESULTS = Path(__file__).parents[1] / "results"
_MODELS = {"mlp": "perceptron, batch 32", "conv": "convolutional net, batch 32"}


def main() -> int:
    """Run all processes, write the page, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each process (20)")
    parser.add_argument("--processes", type=int, default=3, help="for each model (3)")
    options = parser.parse_args()
    measured = {name: [_measure(name, options.seconds) for _ in range(options.processes)] for name in _MODELS}
    lines = list(_page(measured))
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / f"overhead-{datetime.date.today().isoformat()}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return int(any(_interval(runs, "cpu").low > LIMIT for runs in measured.values()))


def _measure(name: str, seconds: float) -> dict[str, Any]:
    argv = [sys.executable, "-m", "benchmarks.overhead.measure", name, str(seconds)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _interval(runs: list[dict[str, Any]], clock: str) -> Ratio:
    # On and off share a process, its memory layout too: what makes processes differ cannot tell them apart.
    return ratio_interval([run[clock] for run in runs], prior_sd=0.001)


def _page(measured: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    yield f"# What observing costs, {datetime.date.today().isoformat()}"
    yield ""
    load = os.getloadavg()[0]
    yield (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, "
        f"Python {platform.python_version()}. Time with hooks over time without, 95% interval; the limit is {LIMIT}. "
        "CPU time is what a quiet machine's wall time would be; wall time holds what others did meanwhile."
    )
    yield ""
    yield "| program | step | ratio of CPU time | ratio of wall time | within the limit |"
    yield "|---|---|---|---|---|"
    for name, runs in measured.items():
        step_s = sorted(run["step_s"] for run in runs)[len(runs) // 2]
        cpu, wall = _interval(runs, "cpu"), _interval(runs, "wall")
        within = "yes" if cpu.high <= LIMIT else "no" if cpu.low > LIMIT else "not decided"
        yield f"| {_MODELS[name]} | {step_s * 1e3:.2f} ms | {_words(cpu)} | {_words(wall)} | {within} |"


def _words(ratio: Ratio) -> str:
    return f"{ratio.ratio:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]"


if __name__ == "__main__":
    sys.exit(main())
