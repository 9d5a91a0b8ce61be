"""SIGKILL at random moments of a tuning session, then resume: no finished trial is lost or repeated.

python -m benchmarks.tune.kills [--kills 20]
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tune.against_itself import PROGRAM
from benchmarks.tune.page import write
from hotloop.store.session import find_session

COMMAND = [sys.executable, "-m", "hotloop", "tune", "--quiet", "--budget", "90s"]
COMMAND += ["--only", "fused_optimizer,thread_count,openmp_wait_policy"]


def main() -> None:
    """Kill, look, resume; write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    num = parser.parse_args().kills
    rng = random.Random(0)
    lost = repeated = 0
    finished: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(PROGRAM)
        log = []
        for number in range(num):
            # A session that came to its end before the kill is followed by a new one.
            finished = {} if "result" in finished else finished
            resume = ["--resume"] if finished else []
            run = subprocess.Popen([*COMMAND, *resume, "train.py"], cwd=folder, start_new_session=True)
            time.sleep(rng.uniform(1, 45))  # an A/A pair alone takes some 20 s
            over = run.poll() is not None
            run.send_signal(signal.SIGKILL)
            run.wait()
            time.sleep(1)
            now = _entries(folder)
            lost += sum(key not in now for key in finished)
            repeated += sum(now.get(key, row) != row for key, row in finished.items() if key != "result")
            finished = now
            log.append(f"| {number + 1} | {'ended by itself' if over else 'killed'} | {len(now)} |")
            print(log[-1], flush=True)
        done = subprocess.run([*COMMAND, "--resume", "train.py"], cwd=folder, check=False)
        lost += sum(key not in _entries(folder) for key in finished)
    lines = [
        f"{num} SIGKILLs: {lost} finished entries lost, {repeated} done again; "
        f"the last resume ended with {done.returncode}.",
        "",
        "| kill | | entries finished |",
        "|---|---|---|",
        *log,
    ]
    write("kills", "Killed and resumed", lines)


def _entries(folder: Path) -> dict[str, int]:
    """Return the row number of each finished entry: one done again would have a new one."""
    if not (folder / ".hotloop").exists():  # killed before it began
        return {}
    session = find_session(folder)
    try:
        return {key: number for number, key in enumerate(session.keys())}
    finally:
        session.close()


if __name__ == "__main__":
    main()
