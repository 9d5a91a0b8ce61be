"""What parity says of 30 harmless and 16 broken changes to ten real programs.

    python -m benchmarks.parity record FILE
    python -m benchmarks.parity judge FILE

`record` runs what FILE lacks (some 600 short trainings on one core, an hour); `judge` writes
`benchmarks/results/parity-DATE.md`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # children are forked from this process: no threads before that

import numpy.random  # noqa: F401 - what children need is imported here, once
import torch  # noqa: F401

from benchmarks.parity.judge import page
from benchmarks.parity.programs import ALL
from benchmarks.parity.record import read, record
from benchmarks.tune.page import write


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    recording = what.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", nargs="*", help="names of programs")
    what.add_parser("judge").add_argument("file", type=Path)
    args = parser.parse_args()
    if args.what == "record":
        record(args.file, [p for p in ALL if not args.only or p.name in args.only])
    else:
        write("parity", "Parity of harmless and broken changes", list(page(read(args.file))))


if __name__ == "__main__":
    main()
