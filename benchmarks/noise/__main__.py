"""Record step times of six programs, and say how blocks of them scatter.

    python -m benchmarks.noise record CONDITION FILE [--short N]
    python -m benchmarks.noise pack FILE...
    python -m benchmarks.noise curve

CONDITION is `quiet`, `busy` (one process beside it burns a core) or `busy, passive` (with OMP_WAIT_POLICY=PASSIVE).
`record` takes about 30 s a program and writes FILE; `pack` makes the test data of such files; `curve` writes
`benchmarks/results/noise-DATE.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from tests.stats.recorded import Segment, load, save

from benchmarks.noise.curve import page
from benchmarks.noise.programs import ALL
from benchmarks.noise.record import LONG, SHORT, Recorder
from benchmarks.tune.page import write

PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
QUIET_WAIT = 0.15
"""Share of waiting: 0.03 to 0.06 on the quiet machine, 0.3 to 6 beside others."""
BURN = "while True: pass"


@contextlib.contextmanager
def neighbour(condition: str) -> Iterator[None]:
    """Keep one core busy where the condition says so."""
    if not condition.startswith("busy"):
        yield
        return
    burner = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


def record(condition: str, path: Path, num_short: int, only: list[str]) -> None:
    """Record every program; what is finished is kept when the time is over."""
    segments: list[Segment] = []
    with neighbour(condition):
        for program in [program for program in ALL if not only or program.name in only]:
            recorder = Recorder(program, condition, PASSIVE if "passive" in condition else {})
            pairs = range(1, num_short + 1) if num_short else (0,)
            for pair in pairs:
                segments += recorder.pair(pair, SHORT if num_short else LONG)
            save(segments, path)
            print(program.name, len(segments), flush=True)


def _labelled(segment: Segment) -> Segment:
    """What was meant to be quiet and was not is `crowded`: threads waited for a core a seventh of the time."""
    crowded = sum(segment.waiting_s) > QUIET_WAIT * sum(segment.running_s)
    is_quiet = segment.condition == "quiet"
    return msgspec.structs.replace(segment, condition="crowded") if is_quiet and crowded else segment


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.noise", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    recording = what.add_parser("record")
    recording.add_argument("condition", choices=("quiet", "busy", "busy, passive"))
    recording.add_argument("file", type=Path)
    recording.add_argument("--short", type=int, default=0, help="so many short pairs instead of a long one")
    recording.add_argument("--only", nargs="*", default=[], help="names of programs")
    what.add_parser("pack").add_argument("files", type=Path, nargs="+")
    what.add_parser("curve")
    args = parser.parse_args()
    if args.what == "record":
        record(args.condition, args.file, args.short, args.only)
    elif args.what == "pack":
        save([_labelled(segment) for path in args.files for segment in load(path)])
    else:
        write("noise", "Step times of real programs", list(page()))


if __name__ == "__main__":
    main()
