"""`python -m benchmarks.published fetch|compare`: see the package's page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.published.compare import WAYS, Row, compare, table
from benchmarks.published.corpus import CORPUS
from benchmarks.published.place import fetch
from benchmarks.tune.page import write


def main() -> int:
    """Fetch the sources, or compare and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("fetch", "compare"))
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--site", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    args = parser.parse_args()
    entries = [entry for entry in CORPUS if not args.only or entry.name in args.only]
    sources = args.sources.resolve()
    if args.what == "fetch":
        for entry in entries:
            fetch(entry, sources)
        return 0
    rows: list[Row] = []
    for entry in entries:
        row = compare(entry, sources, args.site.resolve() if args.site else None, args.ways)
        rows.append(row)
        print(entry.name, row.verdict(), flush=True)
        for way, ending in row.endings.items():
            if ending.exit_code != 0:
                sys.stderr.write(f"--- {entry.name} {way}\n{ending.output[-3000:]}\n")
    if not args.only:
        write_page(rows)
    return int(any(row.verdict().isupper() for row in rows))


def write_page(rows: list[Row]) -> None:
    """Write the results."""
    ran = [row for row in rows if not row.absent]
    same = [row for row in ran if row.verdict() == "same"]
    num_all, num_same = (len({row.entry.repository for row in some}) for some in (ran, same))
    head = [
        f"{len(ran)} scripts of {num_all} repositories ran whole: alone, under `hotloop observe --full`, and under "
        f"`hotloop run` with a plan of two exact optimizations. {len(same)} scripts of {num_same} repositories ended "
        "the same: in exit code and, where the script is seeded, in the last loss that it prints.",
        "",
    ]
    write("published", "Published scripts with and without hotloop", [*head, *table(rows)])


if __name__ == "__main__":
    sys.exit(main())
