"""`python -m benchmarks.diagnosis [--seconds S] [--only WORD]`: is the injected fault the top finding?

Run from the repository's root. Each program of `tests/faults` is written to a scratch folder, diagnosed by the command
as a user types it, one at a time, and compared with what was injected. Writes `benchmarks/results/diagnosis-DATE.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.library import CASES, Case

from benchmarks.diagnosis.page import Outcome, page
from hotloop.diagnose.engine import diagnose
from hotloop.model.diagnosis import Diagnosis

_RESULTS = Path(__file__).parents[1] / "results"
_PATIENCE_S = 90
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""One thread that does not spin: the programs are compared with each other on a machine that may be busy."""


def main() -> None:
    """Diagnose every program and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="measured of each program after warm-up (4)"
    )
    parser.add_argument("--only", default="", help="programs whose name holds this word")
    parser.add_argument("--keep", type=Path, help="a folder for what was observed of each program")
    parser.add_argument("--again", type=Path, help="such a folder: ask the rules again, run nothing")
    parser.add_argument("--out", type=Path, help="where the page goes")
    given = parser.parse_args()
    outcomes = []
    for case in (case for case in CASES if given.only in case.name):
        outcome = diagnose_again(case, given.again) if given.again else run(case, given.seconds, given.keep)
        outcomes.append(outcome)
        print(f"{'ok ' if outcome.right else 'BAD'} {case.name}: {outcome.top} ({outcome.said})", flush=True)
    path = given.out or _RESULTS / f"diagnosis-{datetime.date.today().isoformat()}.md"
    path.write_text(page(outcomes, given.seconds), encoding="utf-8")
    print(path)


def run(case: Case, seconds: float, keep: Path | None) -> Outcome:
    """Run `hotloop diagnose` on one program."""
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(case.source(), encoding="utf-8")
        words = ["--quiet", "--seconds", str(seconds), "--json", "found.json", "train.py"]
        done = _run([sys.executable, "-m", "hotloop", "diagnose", *words], folder)
        found = folder / "found.json"
        if not found.is_file():
            return Outcome(case, None, done.strip().splitlines()[-2:])
        if keep is not None:
            keep.mkdir(exist_ok=True)
            (keep / f"{case.name}.json").write_bytes(found.read_bytes())
        said: dict[str, Any] = json.loads(found.read_text())
        return Outcome(case, said, [])


def diagnose_again(case: Case, folder: Path) -> Outcome:
    """Ask the rules as they are now about what was observed before."""
    found = folder / f"{case.name}.json"
    if not found.is_file():
        return Outcome(case, None, ["not observed"])
    observation = msgspec.json.decode(found.read_bytes(), type=Diagnosis).observation
    return Outcome(case, json.loads(msgspec.json.encode(diagnose(observation))), [])


def _run(command: Sequence[str], folder: Path) -> str:
    """Return what the command wrote to standard error."""
    with (folder / "errors").open("w+") as errors:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **_ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            child.wait(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)  # hotloop ends the program it observes
            child.wait(timeout=_PATIENCE_S)
            return f"no step was measured in {_PATIENCE_S} s"
        errors.seek(0)
        return errors.read()


if __name__ == "__main__":
    main()
