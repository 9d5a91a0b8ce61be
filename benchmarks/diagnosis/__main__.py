"""`python -m benchmarks.diagnosis run|page FOLDER`: is the injected fault the top finding?

Run from the repository's root. `run` writes each program of `tests/faults` that FOLDER does not hold yet to a scratch
folder, diagnoses it by the command as a user types it, and keeps what was observed in FOLDER, so that it can be ended
at any time and go on later; `--traceml PYTHON` asks TraceML, installed beside that Python, instead. `show` asks the
rules as they are now about what FOLDER holds. `page` writes `benchmarks/results/diagnosis-DATE.md` from it, as `run`
does when no program is left.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from tests.faults.case import Case
from tests.faults.held_out import HELD_OUT
from tests.faults.library import CASES
from tests.faults.written import WRITTEN

from benchmarks.diagnosis import programs, traceml
from benchmarks.diagnosis.page import page
from benchmarks.tune.page import write

SETS: dict[str, Sequence[Case]] = {"library": CASES, "held out": HELD_OUT, "written": WRITTEN}


def main() -> None:
    """Run programs, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    parser.add_argument("what", choices=["run", "page", "show"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=45.0, help="time budget of each program (45)")
    parser.add_argument(
        "--within", type=float, default=float("inf"), help="begin no program after so many seconds"
    )
    parser.add_argument("--only", default="", help="programs whose name holds this word")
    parser.add_argument(
        "--part", default="1/1", help="2/3 is every third program from the second on: several can run at once"
    )
    parser.add_argument(
        "--set", choices=list(SETS), default="library", help="which programs (library)", dest="which"
    )
    parser.add_argument("--traceml", type=Path, metavar="PYTHON", help="ask TraceML instead")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    cases = [case for case in SETS[given.which] if given.only in case.name]
    part, parts = map(int, given.part.split("/"))
    if given.what == "run":
        _run(cases[part - 1 :: parts], given)
    elif given.what == "show":
        for case in cases:
            _tell(case, given.folder)
    known = {
        name: [one for one in (programs.outcome(case, given.folder) for case in which) if one]
        for name, which in SETS.items()
    }
    complete = sum(map(len, known.values())) == sum(map(len, SETS.values()))
    if given.what == "page" or (given.what == "run" and complete):
        write("diagnosis", "Diagnosis of programs with one known fault", page(known, given.seconds))


def _run(cases: list[Case], given: argparse.Namespace) -> None:
    begin_s = time.monotonic()
    for case in cases:
        ends = ("traceml",) if given.traceml else ("json", "failed")
        if any((given.folder / f"{case.name}.{end}").exists() for end in ends):
            continue
        if time.monotonic() - begin_s > given.within:
            return
        if given.traceml:
            traceml.run(case, given.traceml, given.folder)
        else:
            programs.run(case, given.seconds, given.folder)
            _tell(case, given.folder)


def _tell(case: Case, folder: Path) -> None:
    one = programs.outcome(case, folder)
    if one is not None:
        word = "ok " if one.right else "BAD"
        print(f"{word} {case.name}: {one.top} [{one.line}] {' '.join(one.loud)} {one.errors}", flush=True)


if __name__ == "__main__":
    main()
