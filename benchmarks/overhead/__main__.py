"""What observing costs: the time of a step with the hooks on over the time with them off, beside two peers.

Run from the repository's root: `python -m benchmarks.overhead [--seconds S] [--processes N] [--traceml PYTHON]`. Each
process trains one model on one thread and takes one instrument out and puts it back, block by block (off, on, on, off);
processes of the instruments take turns; the interval holds the variance between processes and between blocks. TraceML
runs under the given Python, which has the package traceml-ai. Writes `benchmarks/results/overhead-DATE.md`; exit code 1
where an interval of hotloop's lies above the limit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.model.ratio import Ratio
from hotloop.probe.record.burst_timing import PASS_NS, SHARE
from hotloop.stats.pairs import ratio_interval
from hotloop.stats.student import student_quantile

LIMIT = 1.01
"""Observing is promised to cost less than 1% of a step."""
_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "results"
_MODELS = {"mlp": "perceptron, batch 32", "conv": "convolutional net, batch 32"}
Runs = dict[tuple[str, str], list[dict[str, Any]]]


def main() -> int:
    """Run all processes, write the page, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each process (20)")
    parser.add_argument("--processes", type=int, default=3, help="for each model (3)")
    parser.add_argument("--traceml", type=Path, help="the Python that has traceml-ai")
    options = parser.parse_args()
    pythons = {"hotloop": Path(sys.executable), "torch.profiler": Path(sys.executable)}
    if options.traceml:
        pythons["TraceML"] = options.traceml
    measured: Runs = {(model, name): [] for model in _MODELS for name in pythons}
    for _ in range(options.processes):
        for model, name in measured:
            measured[model, name].append(_measure(pythons[name], model, options.seconds, name))
    in_situ = {
        model: [_in_situ(model, options.seconds) for _ in range(options.processes)] for model in _MODELS
    }
    lines = [*_page(measured), *_in_situ_page(in_situ)]
    (_RESULTS / f"overhead-{datetime.date.today().isoformat()}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    over = any(_interval(measured[model, "hotloop"], "typical").low > LIMIT for model in _MODELS)
    return int(over or any(_cost(runs).low > LIMIT - 1 for runs in in_situ.values()))


class _Mean(NamedTuple):
    """A mean with its 95% interval, of the means of processes."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> _Mean:
        mean = statistics.fmean(values)
        half = student_quantile(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)


def _in_situ(model: str, seconds: float) -> dict[str, Any]:
    argv = [sys.executable, "-W", "ignore", "-m", "benchmarks.overhead.in_situ", model, str(2 * seconds)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=_ROOT)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _share_timed(step_s: float) -> float:
    """Return which share of steps of this length the probe times by phase."""
    return min(1.0, SHARE * step_s * 1e9 / PASS_NS)


def _cost(runs: Sequence[dict[str, Any]]) -> _Mean:
    """Return what observing takes of a step."""
    costs = []
    for run in runs:
        timed, step_s = _share_timed(run["step_s"]), run["step_s"]
        added = timed * statistics.fmean(run["timed"]) + (1 - timed) * statistics.fmean(run["passed"])
        costs.append(added * 1e-6 / step_s)
    return _Mean.of(costs)


def _in_situ_page(measured: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    yield ""
    yield (
        "What the hook points add where they are (`benchmarks/overhead/in_situ.py`): the time between the program's "
        "calls and torch's own with the hooks in, less that without, kernels left out; mean of the processes, 95% "
        "interval. Of a step as long as this one the probe times the given share by phase."
    )
    yield ""
    yield "| program | step | a timed step | a passed step | timed | of the step | within the limit |"
    yield "|---|---|---|---|---|---|---|"
    for model, runs in measured.items():
        step_s = statistics.median(run["step_s"] for run in runs)
        timed, passed = (
            _Mean.of([statistics.fmean(run[kind]) for run in runs]) for kind in ("timed", "passed")
        )
        cost = _cost(runs)
        within = "yes" if cost.high <= LIMIT - 1 else "no" if cost.low > LIMIT - 1 else "not decided"
        yield (
            f"| {_MODELS[model]} | {step_s * 1e3:.2f} ms | {timed.mean:.0f} [{timed.low:.0f}, {timed.high:.0f}] us "
            f"| {passed.mean:.0f} [{passed.low:.0f}, {passed.high:.0f}] us | {_share_timed(step_s):.0%} "
            f"| {cost.mean:.2%} [{cost.low:.2%}, {cost.high:.2%}] | {within} |"
        )


def _measure(python: Path, model: str, seconds: float, name: str) -> dict[str, Any]:
    arguments = [model, str(seconds), name]
    argv = [str(python), "-m", "benchmarks.overhead.measure", *arguments]
    if name == "TraceML":  # it does nothing without its aggregator, which its launcher starts
        logs = tempfile.mkdtemp(prefix="traceml-")
        argv = [str(python.parent / "traceml"), "run", "--logs-dir", logs, "--run-name", "it"]
        script = str(_ROOT / "benchmarks" / "overhead" / "measure.py")
        argv += ["--no-save-training-output", script, "--args", *arguments]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    found = next(line for line in done.stdout.splitlines() if line.startswith('{"step_s"'))
    result: dict[str, Any] = json.loads(found)
    return result


def _interval(runs: list[dict[str, Any]], clock: str) -> Ratio:
    # On and off share a process, its memory layout too: what makes processes differ cannot tell them apart.
    return ratio_interval([run[clock] for run in runs], prior_sd=0.001)


def _page(measured: Runs) -> Iterator[str]:
    yield f"# What observing costs, {datetime.date.today().isoformat()}"
    yield ""
    load = os.getloadavg()[0]
    yield (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, "
        f"Python {platform.python_version()}. Time with the instrument over time without, 95% interval; the limit is "
        f"{LIMIT}. The typical step is the mean of those that took less than twice the median; all CPU "
        "time holds writing the records too, and what the neighbours do to a processor."
    )
    yield ""
    yield "| program | instrument | step | typical step | all CPU time | within the limit |"
    yield "|---|---|---|---|---|---|"
    for (model, name), runs in measured.items():
        step_s = sorted(run["step_s"] for run in runs)[len(runs) // 2]
        typical, cpu = _interval(runs, "typical"), _interval(runs, "cpu")
        within = "yes" if typical.high <= LIMIT else "no" if typical.low > LIMIT else "not decided"
        yield (
            f"| {_MODELS[model]} | {name} | {step_s * 1e3:.2f} ms "
            f"| {_words(typical)} | {_words(cpu)} | {within} |"
        )


def _words(ratio: Ratio) -> str:
    return f"{ratio.ratio:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]"


if __name__ == "__main__":
    sys.exit(main())
