"""A known 1.5x change beside a neighbour that burns one core on and off.

    python -m benchmarks.tune.neighbour

The program does half as much work again while anomaly mode is on, which `debug_apis_off` switches off: the true ratio
is 1.5 by construction (anomaly mode itself has nothing to watch in it, the work is under no_grad).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.tune.page import write

PROGRAM = """
import torch
torch.autograd.set_detect_anomaly(True)
weight = torch.nn.Parameter(torch.ones(()))
optimizer = torch.optim.SGD([weight], lr=1e-3)
a = torch.randn(160, 160)
while True:
    with torch.no_grad():
        for _ in range(90 if torch.is_anomaly_enabled() else 60):
            a @ a
    (weight * weight).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
BURN = """
import time
while True:
    end = time.monotonic() + 2
    while time.monotonic() < end:
        pass
    time.sleep(4)
"""
TUNE = [sys.executable, "-m", "hotloop", "tune", "--budget", "4m", "--only", "debug_apis_off"]


def main() -> None:
    """Tune beside the neighbour and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(PROGRAM)
        neighbour = subprocess.Popen([sys.executable, "-c", BURN])
        try:
            subprocess.run(
                [*TUNE, "--json", "out.json", "train.py"],
                cwd=folder,
                check=True,
            )
        finally:
            neighbour.kill()
        result = json.loads((Path(folder) / "out.json").read_text())
    speedup, load = result["plan"]["speedup"], result["contention"]
    shown = (
        "the plan is empty" if speedup is None else "{ratio:.3f} [{low:.3f}, {high:.3f}]".format(**speedup)
    )
    lines = [
        "True ratio 1.5; the neighbour burns one core for 2 s of every 6.",
        "",
        f"- measured: {shown}",
        f"- blocks repeated: {load['num_void']} of {load['num_blocks']}, kept noisy: {load['num_noisy']}, "
        f"others' largest share {load['max_foreign_share']}",
        f"- refused: {result['refused']}" if speedup is None else "",
    ]
    write("neighbour", "A known change beside a busy neighbour", lines)


if __name__ == "__main__":
    main()
