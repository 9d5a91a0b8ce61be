"""hotloop against Holistic Trace Analysis and its fork traceinsight: a complete analysis, each in its own process.

Both peers install a package called `hta`, so each needs an environment of its own, outside of this one:

    python -m venv /tmp/hta-venv && /tmp/hta-venv/bin/pip install HolisticTraceAnalysis==0.5.0 "pandas<2.2" "numpy<2"
    python -m venv /tmp/ti-venv && /tmp/ti-venv/bin/pip install traceinsight "pandas<2.2" "numpy<2"
    python -m benchmarks.trace.compare ../shared/traces/owlv2_h100.json.gz \
        --peer hta=/tmp/hta-venv/bin/python --peer traceinsight=/tmp/ti-venv/bin/python --mb 500 --mb 1000

`analyze` of hotloop covers more than what the peers are asked for (temporal breakdown, communication overlap, kernel
breakdown, idle time breakdown), so the ratios are lower bounds.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.trace.replicate import replicate

_PEER = """
import logging, sys, warnings
warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
done = ["parse"]
for name, options in (
    ("get_temporal_breakdown", {"visualize": False}),
    ("get_comm_comp_overlap", {"visualize": False}),
    ("get_gpu_kernel_breakdown", {"visualize": False}),
    ("get_idle_time_breakdown", {"visualize": False, "ranks": [0]}),
):
    try:
        getattr(analysis, name)(**options)
        done.append(name)
    except Exception as error:
        done.append(f"{name} failed: {type(error).__name__}: {error}"[:120])
print("DONE " + "; ".join(done))
"""


def measure(command: list[str], timeout_s: float) -> dict[str, Any]:
    """Wall time, CPU time and peak resident memory of a process."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        deadline = start + timeout_s
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() > deadline:
                process.kill()
            time.sleep(0.01)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().decode(errors="replace").splitlines()
    return {
        "wall_s": round(wall, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_mb": round(usage.ru_maxrss / 1024),
        "exit_code": process.returncode,
        "note": next(
            (line for line in lines if line.startswith("DONE")), "" if not process.returncode else lines[-1:]
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument(
        "--mb", action="append", type=int, default=[], help="sizes of replicas; the source itself comes first"
    )
    parser.add_argument("--repeat", type=int, default=3, help="runs of hotloop, of which the fastest counts")
    parser.add_argument("--peer-timeout", type=float, default=900.0)
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results" / "trace.json")
    options = parser.parse_args()
    peers = dict(peer.split("=", 1) for peer in options.peer)
    scratch = Path(tempfile.mkdtemp(dir=options.scratch))
    rows: list[dict[str, Any]] = []
    try:
        for size in (None, *options.mb):
            path = options.source
            if size is not None:
                path = scratch / f"replica_{size}.json"
                replicate(options.source, path, size * 1_000_000)
            rows += _one_size(path, peers, options.repeat, options.peer_timeout)
            if size is not None:
                path.unlink()
    finally:
        shutil.rmtree(scratch)
    options.results.parent.mkdir(exist_ok=True)
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }
    options.results.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


def _one_size(path: Path, peers: dict[str, str], repeat: int, timeout_s: float) -> list[dict[str, Any]]:
    ours = [sys.executable, "-m", "hotloop", "trace", "analyze", str(path), "--quiet"]
    runs = [measure(ours, timeout_s) for _ in range(repeat)]
    best = min(runs, key=lambda run: run["wall_s"])
    size_mb = path.stat().st_size / 1e6
    rows = [
        {
            "tool": "hotloop",
            "file": path.name,
            "size_mb": round(size_mb),
            **best,
            "all_wall_s": [r["wall_s"] for r in runs],
        }
    ]
    for name, python in peers.items():
        rows.append(
            {
                "tool": name,
                "file": path.name,
                "size_mb": round(size_mb),
                **measure([python, "-c", _PEER, str(path)], timeout_s),
            }
        )
    for row in rows:
        wall, memory = row["wall_s"] / best["wall_s"], row["peak_mb"] / best["peak_mb"]
        print(
            f"{row['file']:24} {row['tool']:14} {row['wall_s']:8.2f} s (cpu {row['cpu_s']:7.2f})  {row['peak_mb']:6} MB"
            f"  {wall:6.1f}x time {memory:5.1f}x memory  exit {row['exit_code']} {row['note']}",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    main()
