"""`python -m benchmarks.published fetch|compare|tune`: see the package's page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks.published.compare import WAYS, Row, compare, table
from benchmarks.published.corpus import CORPUS
from benchmarks.published.place import fetch
from benchmarks.published.tuned import table as tuned_table
from benchmarks.published.tuned import tuned
from benchmarks.tune.page import write
from benchmarks.tune.tuned import Tuned
from benchmarks.tune.tuned import say as tuned_line
from hotloop.tune.design import experience
from hotloop.tune.design.experience import Outcomes, with_trials


def main() -> int:
    """Fetch the sources, compare and keep the rows, or write the page of rows that were kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("fetch", "compare", "page", "tune", "tuned-page", "outcomes"))
    parser.add_argument("--sources", type=Path, default=Path("sources"))
    parser.add_argument("--site", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument(
        "--rows", type=Path, nargs="+", default=[Path("published.jsonl")], help="where rows are kept"
    )
    parser.add_argument("--keep", type=Path, help="a folder for the screens and sessions of tune")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of one tuning session")
    args = parser.parse_args()
    entries = [entry for entry in CORPUS if not args.only or entry.name in args.only]
    if args.what == "page":
        write_page(kept(args.rows))
        return 0
    if args.what == "tuned-page":
        write("published-tuned", "Published scripts, tuned", tuned_table(tuned_rows(args.rows)))
        return 0
    if args.what == "outcomes":
        outcomes: Outcomes = {}
        for one in tuned_rows(args.rows):
            outcomes = with_trials(outcomes, one.trials, one.device)
        Path(experience.__file__).with_name(experience.SHIPPED).write_bytes(experience.encode(outcomes))
        return 0
    differing = 0
    for entry in entries:
        if args.what == "fetch":
            fetch(entry, args.sources)
            continue
        if args.what == "tune":
            site = args.site and args.site.resolve()
            found = tuned(entry, args.sources.resolve(), site, args.budget, args.keep and args.keep.resolve())
            with args.rows[0].open("ab") as file:
                file.write(msgspec.json.encode(found) + b"\n")
            print(tuned_line(found), flush=True)
            continue
        row = compare(entry, args.sources.resolve(), args.site and args.site.resolve(), args.ways)
        with args.rows[0].open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")
        say(row)
        differing += row.differs()
    return int(differing > 0)


def say(row: Row) -> None:
    """Print a row's verdict, and the end of the output where a run failed."""
    print(row.entry.name, row.verdict(), flush=True)
    for way, ending in row.endings.items():
        if ending.exit_code != 0:
            sys.stderr.write(f"--- {row.entry.name} {way}\n{ending.output}\n")


def tuned_rows(files: list[Path]) -> list[Tuned]:
    """Return the last row of each script that was tuned, in the order of the corpus."""
    rows = [
        msgspec.json.decode(line, type=Tuned) for file in files for line in file.read_bytes().splitlines()
    ]
    last = {row.name: row for row in rows}
    return [last[entry.name] for entry in CORPUS if entry.name in last]


def kept(files: list[Path]) -> list[Row]:
    """Return the last row of each script, in the order of the table."""
    rows = [msgspec.json.decode(line, type=Row) for file in files for line in file.read_bytes().splitlines()]
    last = {row.entry.name: row for row in rows}
    return [msgspec.structs.replace(last[entry.name], entry=entry) for entry in CORPUS if entry.name in last]


def write_page(rows: list[Row]) -> None:
    """Write the results."""
    write("published", "Published scripts with and without hotloop", [summary(rows), "", *table(rows)])


def summary(rows: list[Row]) -> str:
    """Say how many scripts ended the same, and of how many repositories every script did."""
    ran = [row for row in rows if not row.absent]
    other = [row for row in ran if row.verdict() != "same"]
    every, differing = ({row.entry.repository for row in some} for some in (ran, other))
    return (
        f"{len(ran)} scripts of {len(every)} repositories ran whole: alone, under `hotloop observe --full`, and (where "
        f"the row has it) under `hotloop run` with a plan of two exact optimizations. {len(ran) - len(other)} of "
        f"{len(ran)} scripts ended the same, all those of {len(every - differing)} of {len(every)} repositories: in "
        "exit code and, where the script is seeded, in the last loss that it prints."
    )


if __name__ == "__main__":
    sys.exit(main())
