"""`hotloop tune` on ten input-bound programs, beside the row that a person would turn on, both measured anew.

    python -m benchmarks.data.input_bound_tuned FOLDER [--budget 120] [--only "CSV rows"]

Each program has rows of the data catalogue of which one should be found; only those of its family are tried. After
the session the program as it was, the session's plan and the row by hand take turns in fresh processes. Writes a page
with machine and date.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import input_bound_training
from benchmarks.data.input_bound_programs import PROGRAMS
from benchmarks.tune.page import write
from benchmarks.tune.side_by_side import Interval, SideBySide, inside, shown
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import TuneResult
from hotloop.optimize.registry import built_in, get
from hotloop.store.session import find_session

KEPT = ("dataset_in_memory", "cached_preprocessing")
SHOULD_BE_FOUND: dict[str, tuple[str, ...]] = {
    "JPEG folder": KEPT,
    "many small files": KEPT,
    "CSV rows": KEPT,
    "HDF5 random reads": KEPT,
    "audio decode": KEPT,
    "token files": (*KEPT, "vectorized_fetch"),
    "video frames": KEPT,
    "tabular lists": (*KEPT, "vectorized_fetch"),
    "remote mount, 2 ms": (*KEPT, "loader_workers", "device_prefetch"),
    "augmentation": ("cached_preprocessing",),
}
NUM_SETS = 2


class Row(NamedTuple):
    """What came of one program."""

    name: str
    step_s: float
    plan: tuple[str, ...]
    measured: Interval | None
    by_hand: Interval | None
    over_by_hand: Interval | None

    @property
    def found(self) -> tuple[str, ...]:
        """The rows that should be found and are in the plan."""
        return tuple(
            one for one in SHOULD_BE_FOUND[self.name] if any(step.startswith(one) for step in self.plan)
        )


def tuned(name: str, folder: Path, budget_s: float) -> Row | str:
    """Tune a program, and measure what came of it; a text: why it could not be."""
    shutil.copyfile(str(input_bound_training.__file__), folder / "train.py")
    PROGRAMS[name](folder / "data")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with inside(folder, environment):
        command = [sys.executable, "-m", "hotloop", "tune", "--budget", f"{budget_s:g}s"]
        command += ["--only", ",".join(each.name for each in built_in()["input"])]
        command += [sys.executable, "train.py", name, "data"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stdout + done.stderr)[-800:]
        with contextlib.closing(find_session(Path.cwd())) as session:
            result, observation = session.get("result", TuneResult), session.get("observation", Observation)
        assert result is not None
        assert observation is not None
        plan = tuple(
            Candidate(name=step.name, params=step.params, numerics=step.numerics)
            for step in result.plan.steps
        )
        row = SHOULD_BE_FOUND[name][0]
        by_hand = (Candidate(name=row, params={}, numerics=get(row).numerics),)
        ran = SideBySide(result.command, observation, [(), by_hand, *([plan] if plan else [])], NUM_SETS)
        return Row(
            name,
            result.baseline.step_s,
            tuple(step.label for step in plan),
            ran.ratio(0, 2) if plan else None,
            ran.ratio(0, 1),
            ran.ratio(1, 2 if plan else 0),
        )


def main() -> None:
    """Tune all of them, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--only", choices=list(PROGRAMS), action="append")
    args = parser.parse_args()
    rows: list[Row] = []
    lines = [
        f"`hotloop tune --budget {args.budget:g}s` on each, unmodified, the rows of the data path alone; then the",
        f"program as it was, the plan and the row by hand in turns, {NUM_SETS} sets of fresh processes. Ratios are of",
        "steps, with 95% intervals.",
        "",
        "| program | step | plan | should be found | found | plan over as it was | by hand | plan over by hand |",
        "|---|---|---|---|---|---|---|---|",
    ]
    try:
        for name in args.only or PROGRAMS:
            folder = args.folder.resolve() / name.replace(" ", "-").replace(",", "")
            folder.mkdir(parents=True, exist_ok=True)
            row = tuned(name, folder, args.budget)
            lines.append(
                _line(row) if isinstance(row, Row) else f"| {name} | could not be tuned: {row!r} |||||||"
            )
            print(lines[-1], flush=True)
            rows += [row] if isinstance(row, Row) else []
    finally:  # what was measured before an interruption is kept
        write("input-bound", "Input-bound programs, tuned", [*lines, *_summary(rows)])


def _summary(rows: list[Row]) -> list[str]:
    over = [row.over_by_hand[0] for row in rows if row.over_by_hand]
    if not over:
        return []
    mean = math.exp(sum(map(math.log, over)) / len(over))
    found = sum(bool(row.found) for row in rows)
    said = f"A row that should be found was, in {found} of {len(rows)}. Plan over by hand: geometric mean {mean:.2f}, "
    return ["", f"{said}lowest {min(over):.2f}."]


def _line(row: Row) -> str:
    return (
        f"| {row.name} | {row.step_s * 1e3:.1f} ms | {', '.join(row.plan) or 'empty'} "
        f"| {' or '.join(SHOULD_BE_FOUND[row.name])} | {', '.join(row.found) or 'none'} "
        f"| {shown(row.measured)} | {shown(row.by_hand)} | {shown(row.over_by_hand)} |"
    )


if __name__ == "__main__":
    main()
