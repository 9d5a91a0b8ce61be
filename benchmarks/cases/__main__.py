"""`python -m benchmarks.cases run|page CASES FOLDER`: is the fault named by its line, and its gain right?

CASES holds `truth.json` and a folder for each case with `slow.py` and `fixed.py`. `run` diagnoses each program as it
stands, in a copy of its folder, and keeps what was said in FOLDER; it can be ended at any time and goes on later.
`page` writes `benchmarks/results/cases-DATE.md`. The true gain is that of `truth.json`, measured elsewhere on whole
runs; the one *here* is the ratio of the mean steps that were observed of the two programs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.tune.page import write

NAMED_AMONG = 2
"""Findings: a reader acts on the first ones."""
WITHIN = 1.5
"""Times too high or too low: a predicted gain is right."""
FALSE = 1.1
"""A gain of a finding on a program without its fault from which on it is a false alarm."""


def main() -> None:
    """Run programs, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases", description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("cases", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="programs whose name holds this word")
    parser.add_argument("options", nargs="*", help="of diagnose, after --")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    truth: dict[str, dict[str, Any]] = json.loads((given.cases / "truth.json").read_text())
    if given.what == "run":
        for name in truth:
            for kind in ("slow", "fixed"):
                if given.only in f"{name}.{kind}":
                    _run(given.cases / name / f"{kind}.py", given.folder, f"{name}.{kind}", given.options)
    else:
        write("cases", "Small programs with one fault, and without it", list(_page(truth, given.folder)))


def _run(script: Path, folder: Path, name: str, options: list[str]) -> None:
    kept = folder / f"{name}.json"
    if kept.exists():
        return
    project = folder / name
    project.mkdir(exist_ok=True)
    for one in script.parent.iterdir():
        shutil.copyfile(one, project / one.name)  # without its permissions: it may not be writable
    words = [sys.executable, "-m", "hotloop", "diagnose", *options, "--json", str(kept.resolve())]
    with (folder / f"{name}.txt").open("w") as out:
        subprocess.run(
            [*words, sys.executable, script.name], cwd=project, stdout=out, stderr=out, check=False
        )
    print(name, "done" if kept.exists() else "failed", flush=True)


def _findings(folder: Path, name: str) -> list[dict[str, Any]] | None:
    """Return what was found in a program; None: it was not run."""
    kept = folder / f"{name}.json"
    found: list[dict[str, Any]] | None = json.loads(kept.read_text())["findings"] if kept.exists() else None
    return found


def _step_s(folder: Path, name: str) -> float | None:
    """Return the mean step that was observed of a program; None: it was not run."""
    kept = folder / f"{name}.json"
    return float(json.loads(kept.read_text())["observation"]["step"]["mean_s"]) if kept.exists() else None


def _page(truth: dict[str, dict[str, Any]], folder: Path) -> Iterator[str]:
    named = right = near_here = judged = 0
    rows, clean = [], []
    for name, fault in truth.items():
        slow, fixed = _findings(folder, f"{name}.slow"), _findings(folder, f"{name}.fixed")
        if slow is not None:
            judged += 1
            place, finding = _planted(slow, fault["lines"])
            ratio = finding["gain"]["ratio"] if finding and finding["gain"] else None
            found = place is not None and place < NAMED_AMONG
            near = ratio is not None and 1 / WITHIN <= ratio / fault["true_gain"] <= WITHIN
            named, right = named + found, right + near
            fast_s, slow_s = (_step_s(folder, f"{name}.{kind}") for kind in ("fixed", "slow"))
            here = slow_s / fast_s if slow_s and fast_s else None
            near_here = near_here + (
                ratio is not None and here is not None and 1 / WITHIN <= ratio / here <= WITHIN
            )
            rows.append(
                f"| {name} | {finding['code'] if finding else '-'} | "
                f"{'-' if place is None else place + 1} | {_times(ratio)} | {_times(fault['true_gain'])} | "
                f"{_times(here)} | {'yes' if found else 'no'} | {'yes' if near else 'no'} |"
            )
        if fixed is not None:
            clean += [
                f"| {name} | {one['code']} | {one['line'] or '-'} | {_times(one['gain']['ratio'])} |"
                for one in fixed
                if one["gain"] and one["gain"]["ratio"] >= FALSE
            ]
    yield f"- The planted line is among the first {NAMED_AMONG} findings in {named} of {judged}."
    yield f"- The gain predicted for it is within {WITHIN} times the true one in {right} of {judged},"
    yield f"  within {WITHIN} times the one here in {near_here}."
    yield ""
    yield "| case | finding at the line | its place | gain predicted | true | here | named | gain right |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from rows
    yield f"\nFindings with a gain of {FALSE} or more on the programs without the fault (each to be judged by hand):\n"
    yield "| case | finding | line | gain predicted |"
    yield "|---|---|---|---|"
    yield from clean


def _planted(findings: list[dict[str, Any]], lines: list[int]) -> tuple[int | None, dict[str, Any] | None]:
    """Return the place of the first finding at one of the lines, and the finding."""
    for place, one in enumerate(findings):
        if one["line"] in lines:
            return place, one
    return None, None


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


if __name__ == "__main__":
    main()
